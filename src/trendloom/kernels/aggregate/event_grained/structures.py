"""Which structure adds up all predecessors that pass, for every move of the pattern: chosen from its predicates alone.

A move whose predicates compare a column of the earlier event with one of the later is split into *arms*: each
requires equal classes and at most two orders, and together they cover the predecessors without overlap. `!=` becomes
two arms, below and above: subtracting the equal ones from all would cancel in floating point.

| predicates of a move            | structure          | cost per event  |
|---------------------------------|--------------------|-----------------|
| none                            | sum                | O(1)            |
| equalities                      | hash               | O(1)            |
| one order (or `!=`)             | fenwick            | O(log n)        |
| equalities and one order        | hash of fenwicks   | O(log n)        |
| two orders, with or without `=` | two-level fenwick  | O(log² n)       |
| anything else                   | scan               | O(n)            |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import Addends, Bars
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys, encode_keys
from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.kernels.matching.tables import OPERATORS, Checks
from trendloom.model.schema import Kind

MOST_ORDERS = 2
"""Orders that the trees can answer together."""
SUM, HASH, TREE, NESTED = range(4)
"""Kinds of arms."""
SOURCE, TARGET = 0, 1
Columns = tuple[Array, Array, Array]
"""Left and right columns of all pairs, and where they are known (see `comparable`)."""


@dataclass(frozen=True)
class Arm:
    """Predecessors with equal values in the pairs `equal`, and in order in each of `ordered` (pair, operator)."""

    equal: tuple[int, ...]
    ordered: tuple[tuple[int, str], ...]

    @property
    def kind(self) -> int:
        if self.ordered:
            return TREE if len(self.ordered) == 1 else NESTED
        return HASH if self.equal else SUM


@dataclass(frozen=True)
class Move:
    """A step from a state, the pairs and tests that apply to it, and its arms (None: predecessors are scanned)."""

    state: int
    step: Step
    pairs: tuple[int, ...]
    tests: tuple[int, ...]
    arms: tuple[Arm, ...] | None

    @property
    def structure(self) -> str:
        if self.arms is None:
            return "scan"
        arm = self.arms[0]
        if arm.kind == TREE:
            return "hash of fenwicks" if arm.equal else "fenwick"
        return {SUM: "sum", HASH: "hash", NESTED: "two-level fenwick"}[arm.kind]


class Items(NamedTuple):
    """Every event once for each state it can stand in, by event, then state: see `items_of`.

    Kernels that keep a value per event and state walk over items instead of testing every event against every state:
    events that fit no position of the pattern (those of a NOT) are left out. `ordinal`: among the items of its state.
    The items of state s are `of_state[begin[s]:begin[s + 1]]`. `tie_start`, `tie_end`: by event.
    """

    event: Array
    state: Array
    ordinal: Array
    of_state: Array
    begin: Array
    tie_start: Array
    tie_end: Array

    def of(self, state: int) -> Array:
        """The events of the items of a state, in order."""
        return self.event[self.of_state[self.begin[state] : self.begin[state + 1]]]


class Arms(NamedTuple):
    """All arms of a block: where its events stand in the structures of every move.

    The two columns of a predicate are numbered together in the order of their values (class by class where there are
    equalities), so that comparing two events is comparing two codes; NULL has none. For each batch (`tree_places`) its
    own events alone are sorted by code. An earlier event gets its *place* in the tree of its class, a later one the
    *prefix* of that tree that passes. So a tree is as large as the batch needs, whatever the block holds.

    Codes of a side in dimension d start at `code_at[arm, d, side]`, one per item of its state.

    `classes` likewise (−1 in `class_at`: one class). `same`: both sides have the same codes.

    Cost: O(items) per block (hashing), O(m log m) per batch of m items; comparing a column with itself sorts once.
    """

    kind: Array
    source: Array
    target: Array
    strict: Array
    same: Array
    codes: Array
    code_at: Array
    classes: Array
    class_at: Array
    distinct: Array  # by arm and dimension: how many different codes there are


class MoveGraph(NamedTuple):
    """By state: `lead`, `trail`, the moves `into` it. By move: its source, its bar (see `Bars`), how it is answered.

    `scanned` moves try every predecessor by `checks`, and by row `tested` of the truth table if that is not −1. All
    others gather from their `arms`. `bars[b]` is a column over the block's events and its end.

    In a *plain* graph no move is scanned and none has a bar, `checks` and `bars` are None, and the sweep is compiled
    without them: they are half of it.
    """

    lead: Array
    trail: Array
    into_begin: Array
    into: Array
    source: Array
    bar: Array
    scanned: Array
    tested: Array
    arms_begin: Array
    arms: Array
    out_begin: Array
    out: Array
    checks: Any
    bars: Any

    @property
    def plain(self) -> bool:
        return self.bars is None

    def simplified(self) -> MoveGraph:
        """The same graph, plain if it can be."""
        return self if self.scanned.any() or len(self.bars) else self._replace(checks=None, bars=None)


def moves_of(spec: AggregationSpec, automaton: Automaton, most_orders: int = MOST_ORDERS) -> list[Move]:
    """The moves of the pattern. Less than two orders: nested trees would take too much memory; −1: always scan."""
    found = []
    for state, steps in enumerate(automaton.moves[0]):
        for step in steps:
            pairs = tuple(i for i, pair in enumerate(spec.pairs) if (state, step.number) in pair.steps)
            tests = tuple(i for i, test in enumerate(spec.tests) if (state, step.number) in test.steps)
            arms = None if tests or most_orders < 0 else _arms(spec, pairs, most_orders)
            found.append(Move(state, step, pairs, tests, arms))
    return found


def structures(spec: AggregationSpec, automaton: Automaton) -> list[tuple[int, Step, str]]:
    """For every move (state before, step) the name of its structure. Needs no data."""
    return [(move.state, move.step, move.structure) for move in moves_of(spec, automaton)]


def items_of(automaton: Automaton, block: Block) -> Items:
    """All items of the pattern's positive part. O(items), by merging lists in order."""
    fitting = [block.members[p] for p in automaton.spec.scopes[0].template.position_of]
    sizes = np.array([len(events) for events in fitting], np.int64)
    begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    event = np.concatenate(fitting).astype(np.int64)
    state = np.repeat(np.arange(len(fitting)), sizes)
    ordinal = np.arange(len(event)) - np.repeat(begin[:-1], sizes)
    if len(fitting) == 1:
        return Items(event, state, ordinal, np.arange(len(event)), begin, block.tie_start, block.tie_end)
    order = np.argsort(event, kind="stable")
    of_state = np.empty(len(event), np.int64)
    of_state[order] = np.arange(len(event))
    return Items(event[order], state[order], ordinal[order], of_state, begin, block.tie_start, block.tie_end)


def arms_of(moves: list[Move], items: Items, columns: Columns) -> tuple[Arms, list[list[int]]]:
    """The arms of all moves over a block, and for every move which are its own. Plain sums of one state are shared."""
    coded: list[_Coded] = []
    sums: dict[int, int] = {}
    mine: list[list[int]] = []
    for move in moves:
        numbers = []
        for arm in move.arms or ():
            if arm.kind == SUM and not any(move.step.ways):
                number = sums.setdefault(move.state, len(coded))
            else:
                number = len(coded)
            if number == len(coded):
                coded.append(_coded(arm, move, items, columns))
            numbers.append(number)
        mine.append(numbers)
    return _arms_table(coded), mine


def graph_of(addends: Addends, moves: list[Move], arms_of_move: list[list[int]], columns: Columns) -> MoveGraph:
    template = addends.spec.pattern_spec.scopes[0].template
    states, bars = len(template.position_of), Bars(addends)
    into = [[i for i, move in enumerate(moves) if move.step.target == state] for state in range(states)]
    source_of_arm = {arm: move.state for move, arms in zip(moves, arms_of_move, strict=True) for arm in arms}
    out = [[arm for arm in sorted(source_of_arm) if source_of_arm[arm] == state] for state in range(states)]
    tested = np.cumsum([bool(move.tests) for move in moves]) - 1
    return MoveGraph(
        bars.lead(),
        bars.trail(),
        *_flat(into),
        np.array([move.state for move in moves], np.int64),
        np.array([bars.row(move.step.ways) for move in moves], np.int64),
        np.array([move.arms is None for move in moves], np.bool_),
        np.array([row if move.tests else -1 for row, move in zip(tested.tolist(), moves, strict=True)], np.int64),
        *_flat(arms_of_move),
        *_flat(out),
        _checks(addends, moves, columns),
        bars.table(),
    )


def _arms(spec: AggregationSpec, pairs: tuple[int, ...], most_orders: int) -> tuple[Arm, ...] | None:
    equal = tuple(i for i in pairs if spec.pairs[i].operator == "=")
    ordered = tuple(i for i in pairs if i not in equal)
    if len(ordered) > most_orders:
        return None
    sides = [("<", ">") if spec.pairs[i].operator == "!=" else (spec.pairs[i].operator,) for i in ordered]
    return tuple(Arm(equal, tuple(zip(ordered, some, strict=True))) for some in product(*sides))


def _checks(addends: Addends, moves: list[Move], columns: Columns) -> Checks:
    """The pairs of every move. NOTs are left to the bars."""
    operators = [OPERATORS.index(pair.operator) for pair in addends.spec.pairs]
    return Checks(
        *_flat([list(move.pairs) for move in moves]),
        *_flat([[] for _ in moves]),
        np.array(operators, np.int64),
        *columns,
        np.zeros((0, 0), np.int64),
        addends.block.tie_start,
        addends.block.tie_end,
    )


# ------------------------------------------------------------------------------------------------ codes


@dataclass(frozen=True, eq=False)
class _Coded:
    """An arm with its codes by dimension and side, and its classes by side (none: one class)."""

    kind: int
    source: int
    target: int
    strict: tuple[bool, ...] = ()
    same: bool = False
    codes: tuple[tuple[Array, Array], ...] = ()
    classes: tuple[Array, Array] | None = None
    distinct: tuple[int, ...] = (1,)


def _coded(arm: Arm, move: Move, items: Items, columns: Columns) -> _Coded:
    source, target = move.state, move.step.target
    if arm.kind == SUM:
        return _Coded(SUM, source, target)
    sides = _Sides(arm, (items.of(source), items.of(target)), source == target, columns)
    if arm.kind == HASH:
        return _Coded(HASH, source, target, codes=(sides.classes,), distinct=(sides.count,))
    orders = [sides.order(pair, operator) for pair, operator in arm.ordered]
    return _Coded(
        arm.kind,
        source,
        target,
        strict=tuple(operator in ("<", ">") for _, operator in arm.ordered),
        same=sides.same,
        codes=tuple(sides.split(order.codes) for order in orders),
        classes=sides.classes if arm.equal else None,
        distinct=tuple(max(order.count, 1) for order in orders),
    )


class _Sides:
    """Both sides of the pairs of an arm, numbered together."""

    def __init__(self, arm: Arm, events: tuple[Array, Array], one_state: bool, columns: Columns) -> None:
        left, right, known = columns
        pairs = (*arm.equal, *(pair for pair, _ in arm.ordered))
        self.values = {pair: (left[pair][events[SOURCE]], right[pair][events[TARGET]]) for pair in pairs}
        valid = [np.logical_and.reduce([known[side, pair][events[side]] for pair in pairs]) for side in (0, 1)]
        sides = [*self.values.values(), tuple(valid)]
        self.same = one_state and all(np.array_equal(one, other) for one, other in sides)
        self.cut = len(events[SOURCE])
        joint = valid[SOURCE] if self.same else np.concatenate(valid)
        self.valid = None if joint.all() else joint
        self.count = 1
        self.class_codes: Array | None = None
        if arm.equal:
            found = encode_keys([self._vector(self._joined(pair)) for pair in arm.equal])
            self.count, self.class_codes = max(found.count, 1), found.codes

    @property
    def classes(self) -> tuple[Array, Array]:
        assert self.class_codes is not None
        return self.split(self.class_codes)

    def order(self, pair: int, operator: str) -> Keys:
        """Codes that grow with the class, then with the value; `>` is `<` of inverted values."""
        values = self._joined(pair)
        vectors = [self._vector(~values if operator in (">", ">=") else values)]
        if self.class_codes is not None:
            vectors.insert(0, self._vector(self.class_codes))
        return encode_keys(vectors)

    def _joined(self, pair: int) -> Array:
        left, right = self.values[pair]
        return left if self.same else np.concatenate([left, right])

    def _vector(self, values: Array) -> Vector:
        return Vector(Kind.INT, values, self.valid)

    def split(self, codes: Array) -> tuple[Array, Array]:
        return (codes, codes) if self.same else (codes[: self.cut], codes[self.cut :])


def _arms_table(coded: list[_Coded]) -> Arms:
    code_at, class_at = np.full((len(coded), 2, 2), -1, np.int64), np.full((len(coded), 2), -1, np.int64)
    strict, distinct = np.zeros((len(coded), 2), np.bool_), np.ones((len(coded), 2), np.int64)
    codes, classes = _Pool(), _Pool()
    for number, arm in enumerate(coded):
        strict[number, : len(arm.strict)], distinct[number, : len(arm.distinct)] = arm.strict, arm.distinct
        for dimension, sides in enumerate(arm.codes):
            code_at[number, dimension] = [codes.put(side) for side in sides]
        if arm.classes is not None:
            class_at[number] = [classes.put(side) for side in arm.classes]
    return Arms(
        np.array([arm.kind for arm in coded], np.int64),
        np.array([arm.source for arm in coded], np.int64),
        np.array([arm.target for arm in coded], np.int64),
        strict,
        np.array([arm.same for arm in coded], np.bool_),
        codes.whole(),
        code_at,
        classes.whole(),
        class_at,
        distinct,
    )


class _Pool:
    """Arrays one after another; an array that is put twice is kept once."""

    def __init__(self) -> None:
        self.arrays: dict[int, Array] = {}
        self.begin: dict[int, int] = {}
        self.size = 0

    def put(self, array: Array) -> int:
        if id(array) not in self.arrays:
            self.arrays[id(array)], self.begin[id(array)] = array, self.size
            self.size += len(array)
        return self.begin[id(array)]

    def whole(self) -> Array:
        arrays = list(self.arrays.values())
        return np.concatenate(arrays).astype(np.int64, copy=False) if arrays else np.zeros(0, np.int64)


def _flat(lists: list[list[int]]) -> tuple[Array, Array]:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([x for xs in lists for x in xs], np.int64)
