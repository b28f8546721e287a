"""Signatures of a pattern over a block, with their rivals, once per window that may hold them, in bounded chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Protocol

import numpy as np

from trendloom.errors import PlanError, option
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock, check_range
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.kernels.uncertain.chunked import CHUNK, ChunkedSearch, Extensions, FollowerSearch, scopes_crossed
from trendloom.kernels.uncertain.depth_first import DepthFirstSearch, can_search_depth_first
from trendloom.kernels.uncertain.rivals import CLASSES, RivalSearch, excuse_bits
from trendloom.kernels.uncertain.signatures import PartialSignatures, Signatures
from trendloom.model.time import Window

# Windows that may hold a signature: those where it has room, each with the points that belong to it.
#
# A window [s, e) in ticks has the points from ceil(s / grain) to ceil(e / grain) - 1.


@dataclass(frozen=True, eq=False)
class PossibleWindows:
    """`which` signature, the `start` of the window in ticks, and its first and last `points`."""

    which: Array
    start: Array
    points: Array


def span_in_points(window: Window, grain: int) -> int | None:
    """A match takes less than so many points: those that a window can have, or of a bare WITHIN."""
    return None if window.within is None else -(-window.within // grain)


def possible_windows(signatures: PartialSignatures, window: Window, grain: int) -> PossibleWindows:
    """The windows that may hold each signature, by signature and start.

    If the first event comes no earlier than a window, the last comes at max(least, first point + length - 1).
    """
    assert window.within is not None
    assert window.slide is not None
    lowest = np.floor_divide(signatures.least * grain - window.within, window.slide) + 1
    count = np.maximum(np.floor_divide(signatures.latest * grain, window.slide) - lowest + 1, 0)
    which = np.repeat(np.arange(len(signatures)), count)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    start = (lowest[which] + nth) * window.slide
    first, last = -np.floor_divide(-start, grain), -np.floor_divide(-(start + window.within), grain) - 1
    fitting = np.flatnonzero(last - first >= signatures.length - 1)
    return PossibleWindows(which[fitting], start[fitting], np.stack([first[fitting], last[fitting]], axis=1))


# Which patterns the search takes: binding refuses the others by name, and here is where they would go wrong.


def check_supported(automaton: Automaton) -> None:
    """Refuse what signatures with rivals cannot express."""
    spec = automaton.spec
    template = spec.scopes[0].template
    if spec.adjacent or spec.hidden:
        raise _refusal("contiguous matches and EXISTS")
    if automaton.ambiguous or any(len(step.ways) != 1 or step.may_tie for step in automaton.steps):
        raise _refusal("a pattern that leads from one component to another in several ways")
    if any(len(ways) > 1 for ways in template.accepts):
        raise _refusal("a pattern that ends in several ways")
    if any(edge.target < state for state, edges in enumerate(template.edges) for edge in edges):
        raise _refusal("a Kleene part of several components")
    for scope in spec.scopes[1:]:
        if scope.parent or len(scope.template.edges) != 1 or scope.template.edges[0] or scope.open_ended:
            raise _refusal("NOT of more than one event")
    if spec.earliest:
        _check_runs(automaton)


def _check_runs(automaton: Automaton) -> None:
    spec = automaton.spec
    if any(rule.shape.whole for rule in spec.scopes[0].rules):
        raise _refusal("skip-till-next-match with conditions on a whole Kleene part")
    if any(rule.part in scope.parts for scope in spec.scopes[1:] for rule in scope.rules if rule.part is not None):
        raise _refusal("skip-till-next-match with conditions on a NOT inside a Kleene part")
    if len(excuse_bits(automaton)) > CLASSES:
        raise _refusal(f"skip-till-next-match with more than {CLASSES} NOTs")
    for steps in automaton.moves[0]:
        for one, other in combinations(steps, 2):
            if _of_one_type(automaton, one, other) and not _in_line(one, other):
                raise _refusal("skip-till-next-match with NOTs on different ways to one event")


def _of_one_type(automaton: Automaton, one: Step, other: Step) -> bool:
    places = automaton.spec.places
    return places[one.position].type == places[other.position].type


def _in_line(one: Step, other: Step) -> bool:
    """Whether one of two steps crosses all NOTs that the other crosses."""
    mine, theirs = set(scopes_crossed(one)), set(scopes_crossed(other))
    return mine <= theirs or theirs <= mine


def _refusal(what: str) -> PlanError:
    return PlanError(
        f"with imprecise time the search does not take {what}",
        hint=f"use skip-till-any-match or a simpler pattern; {option('engine', 'reference')} runs it on small streams",
    )


ROWS = 1 << 14
"""Most signatures of which rivals and windows are held at once."""
MASSES = 1 << 22
"""Most probabilities of points that partial signatures hold, where a threshold is given."""


class SignatureSearch(Protocol):
    """What all searches for complete signatures offer."""

    def complete(self) -> Iterator[PartialSignatures]:
        """All signatures that may be matches, NOTs left out, in chunks of equal length."""


@dataclass(frozen=True, eq=False)
class FoundSignatures:
    """A chunk; `window_start`: in ticks, where windows slide."""

    signatures: Signatures
    window_start: Array | None = None


def signatures_of(
    spec: PatternSpec, block: IntervalBlock, chunk: int = CHUNK, threshold: Fraction | None = None
) -> Iterator[FoundSignatures]:
    """All signatures that may be matches in some world; how likely they are is left to `confidence`.

    `threshold`: some of those that are less likely are left out, as early as that is known.
    """
    automaton = Automaton(spec)
    check_supported(automaton)
    for times in (block.time, block.high):
        check_range(times, spec.window)
    if threshold is not None:
        chunk = min(chunk, MASSES // block.most_points + 1)
    tests = Extensions(automaton, block, span_in_points(spec.window, block.grain), threshold)
    search = _search_for(tests, chunk)
    rivals = RivalSearch(tests, chunk)
    for complete in search.complete():
        for begin in range(0, len(complete), ROWS):
            some = complete.part(begin, begin + ROWS)
            found = _with_rivals(some, rivals, spec.window, block.grain)
            if len(found.signatures):
                yield found


def _search_for(tests: Extensions, chunk: int) -> SignatureSearch:
    """Depth first where no condition links events, else in chunks."""
    if tests.automaton.spec.earliest:
        return FollowerSearch(tests, chunk)
    return DepthFirstSearch(tests, chunk) if can_search_depth_first(tests) else ChunkedSearch(tests, chunk)


def _with_rivals(complete: PartialSignatures, search: RivalSearch, window: Window, grain: int) -> FoundSignatures:
    rivals = None
    if search.needed:
        rivals, kept = search.of(complete)
        complete = complete.take(kept)
    rows, length = complete.paths.events.shape
    flat = Signatures(
        np.arange(rows + 1, dtype=np.int64) * length,
        complete.paths.events.reshape(-1),
        complete.paths.automaton.position_of[complete.paths.steps].astype(np.int32).reshape(-1),
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
