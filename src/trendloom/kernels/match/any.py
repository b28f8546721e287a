"""All matches under skip-till-any-match, in two phases: what is shared first, the matches themselves last.

Idea (postponing, Zhang's SASE++): runs that differ in a few events share nearly all their work, so none is cloned while
events are read. Phase 1 finds, for all matches together, which (event, state) can be part of one and how early it can
end (`reachability`). Phase 2 builds the matches, depth first from every start, and goes only where a match can still be
completed inside the window of its first event. Where phase 1 is exact there is no dead end. Where it is only a bound, a
dead end is remembered: the bound of its node is raised, so it is entered once per horizon.

It takes what steps by two events alone: rules are pairs, NOTs are thresholds. Cost: that of phase 1, close to linear,
then O(1) per event of the output, plus O(log events) per match where an order predicate leads the way. Matches leave in
chunks of flat arrays, the first ones small; each is built when it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, check_range, horizons
from trendloom.kernels.columns.segments import copy_entries
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.match.search import MatchBuffer, SearchKernel, written
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.matching.reachability import NEVER, accepting, cuts_of, earliest_ends, first_cut
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves, by_rank, checks_of, moves_of, pairs_hold
from trendloom.kernels.matching.windows import windowed

CHUNK = 1 << 22
"""Most entries (events of matches) emitted at a time, unless one match alone has more."""
NEXT_START, DEPTH, FRESH, EMITTED, VISITED, DEAD_ENDS = range(6)
"""What `place` holds: how far the search has come, and what it cost."""
EVENT, POSITION, NODE, MOVE, CURSOR, UNTIL = range(6)
"""Rows of the stack: the path under way, and for every event on it which candidate comes next."""
ONE_BY_ONE, BY_VALUE, BY_ORDER = range(3)
"""How a move walks over successors."""
FAN = 16
"""Nodes, or stretches, that a stretch of the tree covers."""
LEVELS = 9


class Nodes(NamedTuple):
    """Pairs (event, state) of phase 1: those of state s are `begin[s]` to `begin[s + 1]`, in order of time."""

    begin: Array
    event: Array
    state: Array
    ends: Array  # the earliest end of a match from here on; only ever raised
    least: Array  # the least of `ends` among this and the later nodes of its state


class Walks(NamedTuple):
    """By move how it goes from successor to successor of a node, from the first one later than it on:

    - no predicate, or `!=`: all of them, one after the other, each one tested where there is a predicate;
    - `left = right`: every node has the next one of the same value;
    - `left < right` and its kin: a tree of maxima over 16, 16², ... nodes leaps over stretches without any.

    Flat arrays hold the moves one after the other: `first[first_at[m] + node]` is the first candidate,
    `next[next_at[m] + node]` the one after it, by value. The tree of move m has its level l at `tree_at[m, l]`; it
    holds `right`, or ~right where `flip[m]`. A walk is O(1) per successor, O(log nodes) with an order predicate.
    """

    way: Array
    pair: Array  # the pair that leads the way, or −1
    tested: Array  # whether candidates must still be tested
    first_at: Array
    first: Array
    next_at: Array
    next: Array
    tree_at: Array
    tree: Array
    levels: Array
    flip: Array
    or_equal: Array


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
    """A search under way: rows of the path, what was emitted when each event was entered, and `place`.

    Candidates of state s end before node `stop[s]`: from there on nothing can be completed inside the horizon of the
    first event, which only moves forward from start to start.
    """

    stop: Array
    stack: Array
    entered: Array
    place: Array


@dataclass(frozen=True)
class PostponedKernel(SearchKernel):
    """`pairs` are the conditions on the two events of a step."""

    pairs: tuple[Compared, ...]

    def all(self, block: Block) -> Iterator[Matches]:
        return construct_matches(self.pattern_spec, self.pairs, block)


def construct_matches(
    spec: PatternSpec, pairs: tuple[Compared, ...], block: Block, chunk: int = CHUNK
) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    if len(block):
        yield from windowed(Construction(share_matching(spec, pairs, block), chunk), block, spec.window, chunk)


def share_matching(spec: PatternSpec, pairs: tuple[Compared, ...], block: Block) -> Postponed:
    """Phase 1: which nodes matches can go through, and how they are connected. The block has at least one event."""
    check_range(block.time, spec.window)
    automaton = Automaton(spec)
    moves, checks = moves_of(automaton, pairs), checks_of(automaton, pairs, block)
    cuts = cuts_of(checks)
    found = earliest_ends(automaton, block, moves, checks, cuts)
    nodes = nodes_of(found.ends)
    limit = horizons(block, spec.window)
    if limit is None:
        limit = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    position_of = np.array(spec.scopes[0].template.position_of, np.int32)
    tables = MatchTables(
        _starts(automaton, nodes), limit, position_of, accepting(automaton), nodes, walks_of(nodes, moves, checks),
        moves, checks, cuts,
    )  # fmt: skip
    return Postponed(automaton, block, tables, found.exact, found.work)


def _starts(automaton: Automaton, nodes: Nodes) -> Array:
    states = [step.target for step in automaton.starts[0]]
    found = np.concatenate([np.arange(nodes.begin[state], nodes.begin[state + 1]) for state in states])
    return found if len(states) == 1 else found[np.argsort(nodes.event[found], kind="stable")]


class Construction:
    """Phase 2, under way: an iterator of chunks that counts what it has visited."""

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
            yield written(buffer, _construct(self._tables, self._path, buffer))
            size = min(2 * size, max(self.chunk, 1 + int(self.place[DEPTH])))


# ---------------------------------------------------------------------------------------- nodes and walks


def nodes_of(ends: Array) -> Nodes:
    """The nodes of all states."""
    found = [np.flatnonzero(row < NEVER) for row in ends]
    begin = np.cumsum([0, *map(len, found)]).astype(np.int64)
    event = np.concatenate(found).astype(np.int32)
    state = np.repeat(np.arange(len(found), dtype=np.int32), np.diff(begin))
    kept = [row[events] for row, events in zip(ends, found, strict=True)]
    least = [np.minimum.accumulate(row[::-1])[::-1] for row in kept]
    return Nodes(begin, event, state, np.concatenate(kept), np.concatenate(least))


def walks_of(nodes: Nodes, moves: Moves, checks: Checks) -> Walks:
    """The walks of all moves. O(nodes · moves)."""
    size = len(moves.step)
    source = np.repeat(np.arange(len(moves.begin) - 1), np.diff(moves.begin))
    way, pair, flip, or_equal, first_at, next_at = np.zeros((6, size), np.int64)
    firsts, nexts = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    trees: list[list[Array]] = [[] for _ in range(size)]
    for move in range(size):
        way[move], pair[move] = _leader(move, checks)
        mine, theirs = (slice(nodes.begin[s], nodes.begin[s + 1]) for s in (source[move], moves.target[move]))
        first_at[move] = sum(map(len, firsts)) - mine.start
        if way[move] == BY_VALUE:
            next_at[move] = sum(map(len, nexts)) - theirs.start
            first, following = _by_value(nodes.event[mine], nodes.event[theirs], int(pair[move]), checks)
            nexts.append(np.where(following < NEVER, following + theirs.start, NEVER).astype(np.int32))
        else:
            first = _first_later(nodes.event[mine], nodes.event[theirs], checks.tie_end)
        if pair[move] >= 0:
            first[~checks.known[0, pair[move], nodes.event[mine]]] = NEVER
        firsts.append(np.where(first < NEVER, first + theirs.start, NEVER).astype(np.int32))
        if way[move] == BY_ORDER:
            operator = OPERATORS[checks.operators[pair[move]]]
            flip[move], or_equal[move] = operator in (">", ">="), operator in ("<=", ">=")
            right = checks.right[pair[move], nodes.event[theirs]]
            trees[move] = _tree(~right if flip[move] else right, checks.known[1, pair[move], nodes.event[theirs]])
    tree_at, levels = np.zeros((size, LEVELS), np.int64), np.array([len(tree) for tree in trees], np.int64)
    at = accumulate((len(level) for tree in trees for level in tree), initial=0)
    for move, tree in enumerate(trees):
        tree_at[move, : len(tree)] = list(islice(at, len(tree)))
    flat = np.concatenate([np.zeros(0, np.int64), *(level for tree in trees for level in tree)])
    return Walks(
        way, pair, np.diff(checks.pairs_begin) > 0, first_at, np.concatenate(firsts), next_at, np.concatenate(nexts),
        tree_at, flat, levels, flip, or_equal,
    )  # fmt: skip


def _leader(move: int, checks: Checks) -> tuple[int, int]:
    """How a move walks, and the pair by which it does: an equality where there is one, else an order."""
    pairs = checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]
    operators = [OPERATORS[checks.operators[pair]] for pair in pairs]
    if "=" in operators:
        return BY_VALUE, int(pairs[operators.index("=")])
    for pair, operator in zip(pairs, operators, strict=True):
        if operator != "!=":
            return BY_ORDER, int(pair)
    return ONE_BY_ONE, -1


def _by_value(mine: Array, theirs: Array, pair: int, checks: Checks) -> tuple[Array, Array]:
    left, right, distinct = by_rank(checks.left[pair, mine], checks.right[pair, theirs])
    latest = np.full(distinct, NEVER, np.int64)
    return _linked(mine, theirs, left, right, checks.known[1, pair, theirs], latest, checks.tie_end)


def _tree(values: Array, known: Array) -> list[Array]:
    """The values, and their maxima over stretches of 16, 16², ... of them."""
    levels = [np.where(known, values, np.iinfo(np.int64).min)]
    while len(levels[-1]) > FAN:
        levels.append(np.maximum.reduceat(levels[-1], np.arange(0, len(levels[-1]), FAN)))
    return levels


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


@njit(nogil=True)
def _first_later(mine: Array, theirs: Array, tie_end: Array) -> Array:
    """For each of my events the first of theirs that is later (in their numbers); NEVER: none."""
    found = np.empty(len(mine), np.int64)
    at = len(theirs)
    for number in range(len(mine) - 1, -1, -1):
        while at > 0 and theirs[at - 1] >= tie_end[mine[number]]:
            at -= 1
        found[number] = at if at < len(theirs) else NEVER
    return found


@njit(nogil=True)
def _linked(
    mine: Array, theirs: Array, left: Array, right: Array, known: Array, latest: Array, tie_end: Array
) -> tuple[Array, Array]:
    """For each of my events the first of theirs that is later and has its value; for each of theirs the next one."""
    first, following = np.empty(len(mine), np.int64), np.empty(len(theirs), np.int64)
    at = len(theirs)
    for number in range(len(mine) - 1, -1, -1):
        while at > 0 and theirs[at - 1] >= tie_end[mine[number]]:
            at -= 1
            following[at] = latest[right[at]]
            if known[at]:
                latest[right[at]] = at
        first[number] = latest[left[number]]
    while at > 0:
        at -= 1
        following[at] = NEVER  # no candidate leads here
    return first, following


@njit(**INSIDE)
def next_in_order(walks: Walks, move: int, at: int, end: int, bound: int) -> int:
    """The first node from `at` on whose value passes the bound; `end` if there is none before it.

    Nodes are numbered within their state. Up where a stretch ends, down where one holds a value that passes.
    """
    level, or_equal = 0, walks.or_equal[move] == 1
    while (at << (4 * level)) < end:
        value = walks.tree[walks.tree_at[move, level] + at]
        if value > bound or (or_equal and value == bound):
            if level == 0:
                return at
            level -= 1
            at <<= 4
        else:
            at += 1
            while at & 15 == 0 and level + 1 < walks.levels[move]:
                at >>= 4
                level += 1
    return end
