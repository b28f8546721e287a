"""Matches of any pattern, by growing partial matches many at a time (see `kernels.matching`).

`ExpansionKernel` is the general one: every operator, semantics, predicate, NOT and window of the language. It grows
partial matches from their first event on. `JoiningKernel` takes sequences of single events and binds their components
in the order that costs least. Memory is bounded by the longest match times the chunk; time grows with the partial
matches, of which skip-till-any-match has exponentially many.

`reached` finds how far matching gets, to explain missing matches: which events some partial match binds at which
position. Of partial matches that can only go on alike one is enough: where conditions look at neighbours alone, the
state and the last event say everything, and the latest start is the best one, as it is the last to leave its window.
Where other conditions look back at variables that bind one event, these events are compared, too. Where they look at
whole Kleene variables nothing is left out, and there may be exponentially many. Cost: O(events · events of a window)
per move where neighbours decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, check_range, horizons
from trendloom.kernels.contract import Built, Figure
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import CHUNK, Expansion, Filters
from trendloom.kernels.matching.gap_thresholds import comparable
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.join_order import Joining
from trendloom.kernels.matching.partial_matches import Paths, whole_keys
from trendloom.kernels.matching.reachability import NEVER, end_bounds
from trendloom.kernels.matching.windows import in_windows, matches_of

CANDIDATES = 1 << 22
"""Pairs of a partial match and an event that `reached` tries between two calls of `go_on`."""
NOWHERE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class ExpansionKernel(SearchKernel):
    """Matches of patterns that no faster algorithm takes."""

    def all(self, block: Block) -> Iterator[Matches]:
        return enumerate_matches(self.pattern_spec, block)


@dataclass(frozen=True)
class JoiningKernel(SearchKernel):
    """Matches of sequences that conditions between distant components, or inside NOTs, make selective."""

    def all(self, block: Block) -> Iterator[Matches]:
        return joined_matches(self.pattern_spec, block)

    def describe(self, state: SearchState) -> Built | None:
        """The order of the components, which depends on the events."""
        if state.block is None or not len(state.block):
            return None
        return Built("order", (Figure("binds", describe_order(self.pattern_spec, state.block)),))


def enumerate_matches(spec: PatternSpec, block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    check_range(block.time, spec.window)
    gaps = Gaps(Automaton(spec), block, chunk)
    expansion = Expansion(gaps, 0) if spec.earliest or spec.adjacent else Expansion(gaps, 0, _filters(gaps))
    yield from _windowed(gaps, expansion.matches(*whole_keys(gaps.automaton, block, 0), horizons(block, spec.window)))


def joined_matches(spec: PatternSpec, block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """The same for a sequence of single events."""
    check_range(block.time, spec.window)
    joining = _joining(spec, block, chunk)
    yield from _windowed(joining.gaps, joining.matches(*whole_keys(joining.automaton, block, 0)))


def describe_order(spec: PatternSpec, block: Block) -> str:
    """The components in the order in which they are bound over these events, as text."""
    joining = _joining(spec, block)
    return ", ".join(joining.names[at] for at in joining.order)


def _joining(spec: PatternSpec, block: Block, chunk: int = CHUNK) -> Joining:
    return Joining(Gaps(Automaton(spec), block, chunk), 0, chunk, horizons(block, spec.window))


def _windowed(gaps: Gaps, found: Iterable[Paths]) -> Iterator[Matches]:
    """Complete matches in the windows that hold them, each binding once."""
    seen: set[bytes] = set()
    for paths in found:
        for windowed, start in in_windows(gaps, paths):
            if gaps.automaton.ambiguous:
                windowed, start = _unseen(windowed, start, seen)
            if len(windowed):
                yield matches_of(windowed, start)


def _unseen(paths: Paths, start: Array | None, seen: set[bytes]) -> tuple[Paths, Array | None]:
    """Bindings that were not emitted before: one binding can have several derivations."""
    fresh = []
    positions = paths.automaton.position_of[paths.steps]
    for row in range(len(paths)):
        window = b"" if start is None else start[row].tobytes()
        key = window + paths.events[row].tobytes() + positions[row].tobytes()
        if key not in seen:
            seen.add(key)
            fresh.append(row)
    rows = np.array(fresh, np.int64)
    return paths.take(rows), None if start is None else start[rows]


# ------------------------------------------------------------------------------------------- early filters


def _filters(gaps: Gaps) -> Filters:
    """What partial matches can never go on with."""
    ends = end_bounds(gaps.automaton, gaps.block)
    if ends is not None:
        gaps.lookups.delay(ends, NEVER)
    return Filters(ends, sifted(gaps.automaton, gaps.block))


def sifted(automaton: Automaton, block: Block) -> dict[int, Array]:
    """For every step of a sieve, the events that it may bind. O(events) per sieve.

    `b[i].x < max(b[..i-1].x)` says that some earlier b is greater, so the greatest candidate so far decides for all
    matches at once: each binds a subset of the candidates. See Zhang, "High-Performance Complex Event Processing for
    Decision Analytics", ch. 4, on early filters.
    """
    passed: dict[int, Array] = {}
    for sieve in automaton.spec.sieves:
        (left,), (right,), known = comparable((sieve.pair,), block)
        candidate = np.zeros(len(block), np.bool_)
        for position in sieve.positions:
            candidate[block.members[position]] = True
        # x → ~x turns the order around: the earlier event must always be the greater one
        left, right = (~left, ~right) if sieve.pair.operator in ("<", "<=") else (left, right)
        or_equal = sieve.pair.operator in ("<=", ">=")
        good = _some_greater_before(left, right, candidate & known[0, 0], block.tie_start, block.key_starts, or_equal)
        good &= known[1, 0]
        for _, step in sieve.pair.steps:
            passed[step] = passed[step] & good if step in passed else good
    return passed


@njit(nogil=True)
def _some_greater_before(
    left: Array, right: Array, candidate: Array, tie_start: Array, key_starts: Array, or_equal: bool
) -> Array:
    found = np.zeros(len(left), np.bool_)
    for key in range(len(key_starts) - 1):
        any_before, greatest, seen = False, np.int64(0), key_starts[key]
        for f in range(key_starts[key], key_starts[key + 1]):
            while seen < tie_start[f]:
                if candidate[seen] and (not any_before or left[seen] > greatest):
                    any_before, greatest = True, left[seen]
                seen += 1
            found[f] = any_before and (greatest > right[f] or (or_equal and greatest == right[f]))
    return found


# ----------------------------------------------------------------------------------- how far matching gets


@dataclass(frozen=True, eq=False)
class Reached:
    """`events[p, e]`: a partial match binds event e at position p. `ends[e]`: a match ends with e.

    `shortest[p]`: the least time from the first event of a partial match to its event at p. `whole`: all was tried.
    """

    events: Array
    ends: Array
    shortest: Array
    whole: bool


def reached(spec: PatternSpec, block: Block, remembered: frozenset[str] | None, go_on: Callable[[], bool]) -> Reached:
    """What partial matches reach; a lower bound where `go_on` ends the search.

    `remembered`: variables that later conditions look back at; None: at everything.
    """
    check_range(block.time, spec.window)
    search = _SearchFromStarts(spec, block, remembered, go_on)
    whole = search.run()
    return Reached(search.bound, search.ends, search.shortest, whole)


class _SearchFromStarts:
    """A search under way, depth first, latest starts first."""

    def __init__(
        self, spec: PatternSpec, block: Block, remembered: frozenset[str] | None, go_on: Callable[[], bool]
    ) -> None:
        self.block, self.go_on = block, go_on
        self.automaton = Automaton(spec)
        self.gaps = Gaps(self.automaton, block)
        self.expansion = Expansion(self.gaps, 0)
        self.horizon = horizons(block, spec.window)
        self.memory = _Seen(self.automaton, len(block), remembered)
        self.bound = np.zeros((len(spec.places), len(block)), np.bool_)
        self.ends = np.zeros(len(block), np.bool_)
        self.shortest = np.full(len(spec.places), NOWHERE)

    def run(self) -> bool:
        """Whether everything was tried."""
        todo = [self.expansion.starts(*whole_keys(self.automaton, self.block, 0), self.horizon)]
        while todo:
            if not self.go_on():
                return False
            grown = next(todo[-1], None)
            if grown is None:
                todo.pop()
                continue
            fresh = self.memory.fresh(grown)
            if len(fresh):
                self._note(fresh)
                todo.append(self._growth(fresh))
        return True

    def _note(self, paths: Paths) -> None:
        last, first = paths.events[:, -1], paths.events[:, 0]
        positions = self.automaton.position_of[paths.steps[:, -1]]
        self.bound[positions, last] = True
        np.minimum.at(self.shortest, positions, self.block.time[last] - self.block.time[first])
        for whole, _ in in_windows(self.gaps, self.expansion.complete(paths)):
            self.ends[whole.events[:, -1]] = True

    def _growth(self, paths: Paths) -> Iterator[Paths]:
        """The extensions of partial matches, those with the latest start first."""
        limit = self.block.key_starts[self.block.key[paths.events[:, 0]] + 1]
        if self.horizon is not None:
            limit = np.minimum(limit, self.horizon[paths.events[:, 0]])
        if self.expansion.joins:
            yield from self.expansion.children(paths, limit)
            return
        order = np.argsort(-paths.events[:, 0], kind="stable")
        paths, limit = paths.take(order), limit[order]
        tried = np.cumsum(np.maximum(limit - paths.events[:, -1], 1))
        begin = 0
        while begin < len(paths) and self.go_on():
            done = int(tried[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(tried, done + CANDIDATES, side="right")), begin + 1)
            yield from self.expansion.children(paths.take(np.arange(begin, end)), limit[begin:end])
            begin = end


class _Seen:
    """The partial matches seen so far; those that go on as one of them, or worse, need not go on."""

    def __init__(self, automaton: Automaton, events: int, remembered: frozenset[str] | None) -> None:
        self.automaton, self.events, self.remembered = automaton, events, remembered
        states = max((step.target for step in automaton.steps), default=0) + 1
        looks_around = automaton.spec.scopes[0].open_ended
        self.by_start = remembered is not None and not remembered and not looks_around
        self.best = np.full(states * events if self.by_start else 0, -1, np.int64)
        self.seen = np.zeros(0, np.int64)
        columns = 2 + len(remembered or ())
        self.numbered = remembered is not None and states * float(events + 1) ** columns < 2**62

    def fresh(self, paths: Paths) -> Paths:
        """The partial matches that may lead where no other has led."""
        code = self.automaton.target_of[paths.steps[:, -1]] * self.events + paths.events[:, -1]
        if self.by_start:
            return self._later_start(paths, code)
        return self._unseen(paths, code) if self.numbered else paths

    def _later_start(self, paths: Paths, code: Array) -> Paths:
        first = paths.events[:, 0]
        order = np.argsort(-first, kind="stable")
        _, at = np.unique(code[order], return_index=True)
        rows = order[at]
        rows = rows[first[rows] > self.best[code[rows]]]
        self.best[code[rows]] = first[rows]
        return paths.take(rows)

    def _unseen(self, paths: Paths, code: Array) -> Paths:
        row = np.arange(len(paths))
        for events in (paths.events[:, 0], *(_bound(paths, name, row) for name in sorted(self.remembered or ()))):
            code = code * (self.events + 1) + events + 1
        code, rows = np.unique(code, return_index=True)
        new = ~np.isin(code, self.seen, assume_unique=True)
        self.seen = np.union1d(self.seen, code[new])
        return paths.take(rows[new])


def _bound(paths: Paths, variable: str, row: Array) -> Array:
    """The event of a variable that binds one; −1: not bound yet."""
    binds = paths.binding(variable)
    return np.where(binds.any(axis=1), paths.events[row, binds.argmax(axis=1)], -1)
