"""All matches under skip-till-any-match, in two phases: what is shared first, the matches themselves last.

Idea (postponing, Zhang's SASE++): runs that differ in a few events share nearly all their work, so none is cloned while
events are read. Phase 1 finds, for all matches together, which (event, state) can be part of one and how early it can
end (`viability`). Phase 2 builds the matches, depth first from every start, and goes only where a match can still be
completed inside the window of its first event. Where phase 1 is exact there is no dead end. Where it is only a bound, a
dead end is remembered: the bound of its node is raised, so it is entered once per horizon.

It takes what steps by two events alone: rules are pairs, NOTs are thresholds. Cost: that of phase 1, close to linear,
then O(1) per event of the output, plus O(log events) per match where an order predicate leads the way. Matches leave in
chunks of flat arrays, the first ones small, and nothing runs ahead of whoever takes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, check_range, horizons, numbers_of_windows
from trendloom.kernels.columns.segments import copy_entries
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.match.candidate_events import BY_ORDER, BY_VALUE, Nodes, Walks, next_in_order, nodes_of, walks_of
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.matching.reachability import accepting, cuts_of, earliest_ends, first_cut
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, moves_of, pairs_hold
from trendloom.kernels.matching.windows import in_each_window

CHUNK = 1 << 22
"""Most entries (events of matches) given out at a time, unless one match alone has more."""
NEXT_START, DEPTH, FRESH, EMITTED, VISITED, DEAD_ENDS = range(6)
"""What `place` holds: how far the search has come, and what it cost."""
EVENT, POSITION, NODE, MOVE, CURSOR, UNTIL = range(6)
"""Rows of the stack: the path under way, and for every event on it which candidate comes next."""


class MatchTables(NamedTuple):
    """What matches are built from.

    `limit[e]`: the first event that no match from e can hold. `starts`: nodes where matches begin, in order of time.
    By state: `position_of`, and whether a match `accepts` to end there.
    """

    starts: Array
    limit: Array
    position_of: Array
    accepts: Array
    nodes: Nodes
    walks: Walks
    moves: Moves
    checks: Checks
    cuts: Array


@dataclass(frozen=True, eq=False)
class Postponed:
    """The outcome of phase 1, ready to build matches from."""

    automaton: Automaton
    block: Block
    tables: MatchTables
    exact: bool
    work: int


class MatchPath(NamedTuple):
    """A search under way: rows of the path, what was given out when each event was entered, and `place`.

    Candidates of state s end before node `stop[s]`: from there on nothing can be completed inside the horizon of the
    first event, which only moves forward from start to start.
    """

    stop: Array
    stack: Array
    entered: Array
    place: Array


class MatchBuffer(NamedTuple):
    """Room for matches: number i has the entries from `offsets[i]` to `offsets[i + 1]`."""

    offsets: Array
    events: Array
    positions: Array


def construct_matches(
    spec: PatternSpec, pairs: tuple[Compared, ...], block: Block, chunk: int = CHUNK
) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    if len(block):
        for found in Construction(share_matching(spec, pairs, block), chunk):
            if spec.window.slide is None:
                yield found
                continue
            low, count = numbers_of_windows(block.time[found.first], block.time[found.last], spec.window)
            yield from in_each_window(found, low, count, spec.window.slide, chunk)


def share_matching(spec: PatternSpec, pairs: tuple[Compared, ...], block: Block) -> Postponed:
    """Phase 1: which nodes matches can go through, and how they are connected. The block has at least one event."""
    check_range(block.time, spec.window)
    automaton = Automaton(spec)
    moves, checks = moves_of(automaton, pairs), checks_of(automaton, pairs, block)
    cuts = cuts_of(checks)
    viability = earliest_ends(automaton, block, moves, checks, cuts)
    nodes = nodes_of(viability.ends)
    limit = horizons(block, spec.window)
    if limit is None:
        limit = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    position_of = np.array(spec.scopes[0].template.position_of, np.int32)
    tables = MatchTables(
        _starts(automaton, nodes), limit, position_of, accepting(automaton), nodes, walks_of(nodes, moves, checks),
        moves, checks, cuts,
    )  # fmt: skip
    return Postponed(automaton, block, tables, viability.exact, viability.work)


def _starts(automaton: Automaton, nodes: Nodes) -> Array:
    states = [step.target for step in automaton.starts[0]]
    found = np.concatenate([np.arange(nodes.begin[state], nodes.begin[state + 1]) for state in states])
    return found if len(states) == 1 else found[np.argsort(nodes.event[found], kind="stable")]


class Construction:
    """Phase 2, under way: an iterator of chunks that knows what it has visited."""

    def __init__(self, shared: Postponed, chunk: int = CHUNK) -> None:
        self.shared, self.chunk = shared, chunk
        nodes, longest = shared.tables.nodes, int(np.diff(shared.block.key_starts).max()) + 1
        stack, entered = np.empty((6, longest), np.int32), np.empty(longest, np.int64)
        self._path = MatchPath(nodes.begin[:-1].copy(), stack, entered, np.zeros(6, np.int64))
        ends = nodes.ends.copy()  # raised where a node turns out to be dead
        self._tables = shared.tables._replace(nodes=nodes._replace(ends=ends))

    @property
    def place(self) -> Array:
        return self._path.place

    @property
    def visited(self) -> int:
        """Nodes gone through so far, once for every partial match."""
        return int(self.place[VISITED])

    @property
    def dead_ends(self) -> int:
        """Nodes gone through that led to no match."""
        return int(self.place[DEAD_ENDS])

    def __iter__(self) -> Iterator[Matches]:
        size = first_chunk(len(self._tables.nodes.event), self.chunk)
        while self.place[NEXT_START] < len(self._tables.starts) or self.place[DEPTH] > 0:
            buffer = MatchBuffer(np.empty(size + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int32))
            count = int(_construct(self._tables, self._path, buffer))
            used = int(buffer.offsets[count])
            if count:
                yield Matches(buffer.offsets[: count + 1], buffer.events[:used], buffer.positions[:used])
            size = min(2 * size, max(self.chunk, 1 + int(self.place[DEPTH])))


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _construct(tables: MatchTables, path: MatchPath, buffer: MatchBuffer) -> int:
    """Build matches from where the search was left until the buffer is full; returns their number.

    `until` is where a NOT cuts candidates off.
    """
    starts, limit, position_of, accepts = tables.starts, tables.limit, tables.position_of, tables.accepts
    nodes, walks, moves, checks, cuts = tables.nodes, tables.walks, tables.moves, tables.checks, tables.cuts
    stop, stack, entered, place = path.stop, path.stack, path.entered, path.place
    offsets, events, positions = buffer.offsets, buffer.events, buffer.positions
    count, used = 0, 0
    offsets[0] = 0
    next_start, depth, fresh = place[NEXT_START], place[DEPTH], place[FRESH]
    path_event, path_position, path_node = stack[EVENT], stack[POSITION], stack[NODE]
    path_move, cursor, path_until = stack[MOVE], stack[CURSOR], stack[UNTIL]
    horizon = limit[path_event[0]] if depth > 0 else 0
    while True:
        if depth == 0:
            if next_start >= len(starts):
                break
            child = starts[next_start]
            next_start += 1
            horizon = limit[nodes.event[child]]
            if nodes.ends[child] >= horizon:
                continue
            _advance(stop, nodes, horizon)
        else:
            top = depth - 1
            node = path_node[top]
            state = nodes.state[node]
            if fresh == 1:
                if accepts[state]:
                    if used + depth > len(events):
                        break
                    copy_entries(events, used, path_event, 0, depth)
                    copy_entries(positions, used, path_position, 0, depth)
                    used += depth
                    count += 1
                    offsets[count] = used
                fresh = 0
                path_move[top], cursor[top] = moves.begin[state], -1
            child = -1
            e, move, at = path_event[top], path_move[top], cursor[top]
            while move < moves.begin[state + 1]:
                target = moves.target[move]
                end, base = stop[target], nodes.begin[target]
                if at < 0:
                    at = walks.first[walks.first_at[move] + node]
                    path_until[top] = first_cut(e, move, cuts, checks)
                until = path_until[top]
                while at < end:
                    if walks.way[move] == BY_ORDER:
                        left = checks.left[walks.pair[move], e]
                        bound = ~left if walks.flip[move] == 1 else left
                        at = base + next_in_order(walks, move, at - base, end - base, bound)
                        if at >= end:
                            break
                    f = nodes.event[at]
                    if f >= until:
                        break
                    if nodes.ends[at] < horizon and (not walks.tested[move] or pairs_hold(e, f, move, checks)):
                        child = at
                    at = walks.next[walks.next_at[move] + at] if walks.way[move] == BY_VALUE else at + 1
                    if child >= 0:
                        break
                if child >= 0:
                    break
                move, at = move + 1, -1
            path_move[top], cursor[top] = move, at
            if child < 0:
                if entered[top] == place[EMITTED] + count:
                    nodes.ends[node] = horizon
                    place[DEAD_ENDS] += 1
                depth = top
                continue
        path_event[depth], path_node[depth] = nodes.event[child], child
        path_position[depth] = position_of[nodes.state[child]]
        entered[depth] = place[EMITTED] + count
        depth, fresh = depth + 1, 1
        place[VISITED] += 1
    place[NEXT_START], place[DEPTH], place[FRESH] = next_start, depth, fresh
    place[EMITTED] += count
    return count


@njit(**INSIDE)
def _advance(stop: Array, nodes: Nodes, horizon: int) -> None:
    """Move the ends of candidates forward to the first node after which nothing ends before the horizon."""
    for state in range(len(stop)):
        at = stop[state]
        while at < nodes.begin[state + 1] and nodes.least[at] < horizon:
            at += 1
        stop[state] = at


# Matches under skip-till-any-match whose steps depend on the two events they join alone: built last (postponed).


@dataclass(frozen=True)
class PostponedKernel(SearchKernel):
    """`pairs` are the conditions on the two events of a step."""

    pairs: tuple[Compared, ...]

    def all(self, block: Block) -> Iterator[Matches]:
        return construct_matches(self.pattern_spec, self.pairs, block)
