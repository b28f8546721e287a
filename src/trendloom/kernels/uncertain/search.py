"""Signatures of a pattern over a block, with their rivals, once per window that may hold them, in bounded chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Detection
from trendloom.kernels.matching.windows import check_range
from trendloom.kernels.uncertain.block import IntervalBlock
from trendloom.kernels.uncertain.extension import Extensions
from trendloom.kernels.uncertain.followers import NextGrowth
from trendloom.kernels.uncertain.growth import CHUNK, SignatureGrowth
from trendloom.kernels.uncertain.prefixes import Prefixes
from trendloom.kernels.uncertain.rivals import RivalSearch
from trendloom.kernels.uncertain.signatures import Signatures
from trendloom.kernels.uncertain.supported import check_supported
from trendloom.kernels.uncertain.walk import SignatureWalk, can_walk
from trendloom.kernels.uncertain.windows import possible_windows, span_in_points
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]

ROWS = 1 << 14
"""Most signatures of which rivals and windows are held at once."""
MASSES = 1 << 22
"""Most probabilities of points that partial signatures hold, where a threshold is given."""


@dataclass(frozen=True, eq=False)
class FoundSignatures:
    """A chunk; `window_start`: in ticks, where windows slide."""

    signatures: Signatures
    window_start: Array | None = None


def signatures_of(
    spec: Detection, block: IntervalBlock, chunk: int = CHUNK, threshold: Fraction | None = None
) -> Iterator[FoundSignatures]:
    """All signatures that may be matches in some world; how likely they are is left to `confidence`.

    `threshold`: some of those that are less likely are left out, as early as that is known.
    """
    machine = Machine(spec)
    check_supported(machine)
    for times in (block.time, block.high):
        check_range(times, spec.window)
    if threshold is not None:
        chunk = min(chunk, MASSES // block.most_points + 1)
    tests = Extensions(machine, block, span_in_points(spec.window, block.grain), threshold)
    growth = _way_to_grow(tests, chunk)
    rivals = RivalSearch(tests, chunk)
    for complete in growth.complete():
        for begin in range(0, len(complete), ROWS):
            some = complete.part(begin, begin + ROWS)
            found = _with_rivals(some, rivals, spec.window, block.grain)
            if len(found.signatures):
                yield found


def _way_to_grow(tests: Extensions, chunk: int) -> SignatureGrowth | SignatureWalk:
    if tests.machine.spec.earliest:
        return NextGrowth(tests, chunk)
    return SignatureWalk(tests, chunk) if can_walk(tests) else SignatureGrowth(tests, chunk)


def _with_rivals(complete: Prefixes, search: RivalSearch, window: Window, grain: int) -> FoundSignatures:
    rivals = None
    if search.needed:
        rivals, kept = search.of(complete)
        complete = complete.take(kept)
    rows, length = complete.paths.events.shape
    flat = Signatures(
        np.arange(rows + 1, dtype=np.int64) * length,
        complete.paths.events.reshape(-1),
        complete.paths.machine.position_of[complete.paths.steps].astype(np.int32).reshape(-1),
        None,
        span_in_points(window, grain) if window.spanning else None,
        rivals,
    )
    if not window.sliding:
        return FoundSignatures(flat)
    places = possible_windows(complete, window, grain)
    in_each = flat.take(places.which)
    return FoundSignatures(_in_windows(in_each, places.points), places.start)


def _in_windows(signatures: Signatures, points: Array) -> Signatures:
    return Signatures(signatures.offsets, signatures.events, signatures.positions, points, None, signatures.rivals)
