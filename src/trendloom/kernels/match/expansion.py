"""All matches of a pattern over a block, by growing partial matches in chunks (see `expansion`).

This is the general kernel: every operator, semantics, predicate, NOT and window of the language. Memory is bounded by
the longest match times the chunk; time grows with the partial matches, of which skip-till-any-match has exponentially
many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.match.sieve import sifted
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.expansion import CHUNK, Expansion, Filters
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.partial_matches import Paths, without_context
from trendloom.kernels.matching.paths_in_windows import in_windows, matches_of
from trendloom.kernels.matching.reachability import NEVER, end_bounds
from trendloom.kernels.matching.spec import Detection
from trendloom.kernels.matching.windows import check_range, horizons

Array = np.ndarray[Any, Any]


def enumerate_matches(spec: Detection, block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    machine = Machine(spec)
    check_range(block.time, spec.window)

    def make(gaps: Gaps, scope: int) -> Expansion:
        return Expansion(machine, block, gaps, scope, chunk, filters if scope == 0 else None)

    gaps = Gaps(machine, block, make)
    filters = None if spec.earliest or spec.adjacent else _filters(gaps)
    roots = without_context(machine, block, 0, block.keys)
    expansion = make(gaps, 0)
    seen: set[bytes] = set()
    found = expansion.matches(roots, block.key_starts[:-1], block.key_starts[1:], horizons(block, spec.window))
    for paths in found:
        for windowed, start in in_windows(gaps, paths, spec):
            if machine.ambiguous:
                windowed, start = _unseen(windowed, start, seen)
            if len(windowed):
                yield matches_of(windowed, start)


def _filters(gaps: Gaps) -> Filters:
    """What partial matches can never go on with."""
    ends = end_bounds(gaps.machine, gaps.block)
    if ends is not None:
        gaps.lookups.delay(ends, NEVER)
    return Filters(ends, sifted(gaps.machine, gaps.block))


def _unseen(paths: Paths, start: Array | None, seen: set[bytes]) -> tuple[Paths, Array | None]:
    """Bindings that were not given out before: one binding can have several derivations."""
    fresh = []
    positions = paths.machine.position_of[paths.steps]
    for row in range(len(paths)):
        window = b"" if start is None else start[row].tobytes()
        key = window + paths.events[row].tobytes() + positions[row].tobytes()
        if key not in seen:
            seen.add(key)
            fresh.append(row)
    rows = np.array(fresh, np.int64)
    return paths.take(rows), None if start is None else start[rows]
