"""Signatures with their confidences, under the contract of all kernels.

On a live stream the watermark bounds the earliest times of events that are still to come. A match is certain:

- under skip-till-any-match without NOT when all its events are there;
- otherwise when no event can come that may lie before its last event: when the watermark has passed the latest time of
  that (`Certain.LATEST`);
- with a trailing NOT when the watermark is WITHIN ahead of the latest time of its first event, or at the end of its
  window.

All these depend on the events of a match alone, so that every match is given out once, however the stream is cut.
Cost: that of the search (`chunked`, `depth_first`), of rivals (`rivals`), and of confidences (`confidence`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Protocol

import numpy as np

from trendloom.errors import PlanError, option
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, IntervalBlock, check_range, windows_of
from trendloom.kernels.contract.emission import Certain, EmissionPolicy, between
from trendloom.kernels.contract.matches import Matches, ResultColumn
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.kernels.uncertain.chunked import CHUNK, ChunkedSearch, Extensions, FollowerSearch, scopes_crossed
from trendloom.kernels.uncertain.confidence.confidence import confidences_of
from trendloom.kernels.uncertain.depth_first import DepthFirstSearch, can_search_depth_first
from trendloom.kernels.uncertain.rivals import CLASSES, RivalSearch, excuse_bits
from trendloom.kernels.uncertain.signatures import PartialSignatures, Rivals, Signatures
from trendloom.model.schema import Kind
from trendloom.model.time import Window

CONFIDENCE, TIME_LOW, TIME_HIGH = "confidence", "time_low", "time_high"
ROWS = 1 << 14
"""Most signatures of which rivals and windows are held at once."""
MASSES = 1 << 22
"""Most probabilities of points that partial signatures hold, where a threshold is given."""


@dataclass(frozen=True)
class ImpreciseKernel(SearchKernel):
    """`threshold`: only matches at least so likely. `slack`: ticks from the earliest time of an event to its latest."""

    _: KW_ONLY
    threshold: Fraction | None = None
    slack: int = 0

    def all(self, block: Block) -> Iterator[Matches]:
        assert isinstance(block, IntervalBlock)
        for signatures in signatures_of(self.pattern_spec, block, threshold=self.threshold):
            matches = self._weighed(signatures, block)
            if len(matches):
                yield matches

    def _weighed(self, signatures: Signatures, block: IntervalBlock) -> Matches:
        likely, kept = confidences_of(signatures, block, self.threshold)
        columns = {CONFIDENCE: likely.confidence, TIME_LOW: likely.low, TIME_HIGH: likely.high}
        matches = replace(signatures.matches, columns=columns)
        return matches if kept.all() else matches.take(np.flatnonzero(kept))

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return (
            ResultColumn(CONFIDENCE, Kind.FLOAT, "how likely a match is", weighs=True),
            ResultColumn(TIME_LOW, Kind.TIME, "the earliest time of its events", sorts=True),
            ResultColumn(TIME_HIGH, Kind.TIME, "the latest time of its events", sorts=True),
        )

    @property
    def emission(self) -> EmissionPolicy:
        policy = super().emission
        if policy.certain is Certain.LAST and (self.pattern_spec.earliest or len(self.pattern_spec.scopes) > 1):
            policy = replace(policy, certain=Certain.LATEST)
        return replace(policy, slack=self.slack)

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Matches], SearchState]:
        """As in every search; events that are too early by their latest times are dropped."""
        found, after = super().step(state, block, watermark)
        if watermark is None or self.pattern_spec.window.within is None:
            return found, after
        assert isinstance(block, IntervalBlock)
        return found, replace(after, kept=np.flatnonzero(self._needed(block, watermark)))

    def _needed(self, block: IntervalBlock, watermark: int) -> Array:
        """Which events may be part of a match that is not certain yet, or exclude one."""
        emission, within = self.emission, self.pattern_spec.window.within or 0
        if emission.window.sliding:
            needed: Array = block.high >= emission.first_open(watermark)
            return needed
        open_ = block.high + within > watermark if emission.certain is Certain.FIRST else block.high >= watermark
        earliest = watermark
        if emission.certain is not Certain.LAST:
            earliest = min(earliest, int(block.time[open_].min(initial=watermark)))
        return block.high > earliest - within

    def _found(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Matches]:
        if self.emission.certain is not Certain.LATEST or before is None:
            return super()._found(block, before, watermark)
        assert isinstance(block, IntervalBlock)
        news = np.zeros(block.keys, np.bool_)
        news[block.key[block.high >= before]] = True
        return self.fresh(block, self._among(block, news[block.key]), before, watermark)

    def fresh(
        self, block: Block, found: Iterator[Matches], before: int | None, watermark: int | None
    ) -> Iterator[Matches]:
        assert isinstance(block, IntervalBlock)
        for matches in found:
            fresh = between(self._moments(block, matches), before, watermark)
            if fresh.any():
                yield matches if fresh.all() else matches.take(np.flatnonzero(fresh))

    def _moments(self, block: IntervalBlock, matches: Matches) -> Array:
        """The least watermark at which each match is certain."""
        emission, start = self.emission, matches.window_start
        if emission.certain is Certain.LAST:
            last = np.maximum.reduceat(block.time[matches.events], matches.offsets[:-1])
        else:
            last = block.high[matches.last]
            if start is not None:
                last = np.minimum(last, start + (emission.window.within or 0) - 1)
        return emission.moment(block.high[matches.first], last, start)


# ---------------------------------------------------------------------------------- signatures with their rivals


class SignatureSearch(Protocol):
    """What all searches for complete signatures offer."""

    def complete(self) -> Iterator[PartialSignatures]:
        """All signatures that may be matches, NOTs left out, in chunks of equal length."""


def signatures_of(
    spec: PatternSpec, block: IntervalBlock, chunk: int = CHUNK, threshold: Fraction | None = None
) -> Iterator[Signatures]:
    """All signatures that may be matches in some world, with their rivals, once per window that may hold them.

    In bounded chunks. `threshold`: some signatures that are less likely are left out, as early as possible.
    """
    automaton = Automaton(spec)
    check_supported(automaton)
    for times in (block.time, block.high):
        check_range(times, spec.window)
    if threshold is not None:
        chunk = min(chunk, MASSES // block.most_points + 1)
    tests = Extensions(automaton, block, span_in_points(spec.window, block.grain), threshold)
    search, rivals = _search_for(tests, chunk), RivalSearch(tests, chunk)
    for complete in search.complete():
        for begin in range(0, len(complete), ROWS):
            found = _with_rivals(complete.part(begin, begin + ROWS), rivals, spec.window, block.grain)
            if len(found):
                yield found


def span_in_points(window: Window, grain: int) -> int | None:
    """A match takes less than so many points: those that a window can have, or of a bare WITHIN."""
    return None if window.within is None else -(-window.within // grain)


def _search_for(tests: Extensions, chunk: int) -> SignatureSearch:
    """Depth first where no condition links events, else in chunks."""
    if tests.automaton.spec.earliest:
        return FollowerSearch(tests, chunk)
    return DepthFirstSearch(tests, chunk) if can_search_depth_first(tests) else ChunkedSearch(tests, chunk)


def _with_rivals(complete: PartialSignatures, search: RivalSearch, window: Window, grain: int) -> Signatures:
    rivals = None
    if search.needed:
        rivals, kept = search.of(complete)
        complete = complete.take(kept)
    rows, length = complete.paths.events.shape
    positions = complete.paths.automaton.position_of[complete.paths.steps].astype(np.int32)
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    matches = Matches(offsets, complete.paths.events.reshape(-1), positions.reshape(-1))
    if window.sliding:
        return _in_windows(matches, rivals, complete, window, grain)
    return Signatures(matches, None, span_in_points(window, grain) if window.spanning else None, rivals)


def _in_windows(
    matches: Matches, rivals: Rivals | None, complete: PartialSignatures, window: Window, grain: int
) -> Signatures:
    """Each signature once per window that may hold it, by signature and start.

    A window [s, e) in ticks has the points from ceil(s / grain) to ceil(e / grain) - 1. If the first event comes no
    earlier than a window, the last comes at max(least, first point + length - 1).
    """
    assert window.within is not None
    which, start = windows_of(complete.latest * grain, complete.least * grain, window)
    points = np.stack([-np.floor_divide(-start, grain), -np.floor_divide(-(start + window.within), grain) - 1], axis=1)
    fitting = np.flatnonzero(points[:, 1] - points[:, 0] >= complete.length - 1)
    which, points = which[fitting], points[fitting]
    found = replace(matches.take(which), window_start=start[fitting])
    return Signatures(found, points, None, None if rivals is None else rivals.of(which))


# ------------------------------------------------------------------------------------------ supported patterns
#
# Binding refuses the others by name; these checks are where the search would give wrong results.


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
