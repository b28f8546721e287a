"""Partial matches of equal length as matrices, and rules evaluated on all of them at once.

A `Paths` holds one row per partial match: the events it binds, column by column, and the step that bound each. For
matches of a NOT the first columns are the events of the outer match it is tested for (its *context*).

A rule is true if it is true for every choice of columns its quantifiers allow. Choices are tried column by column, each
for all rows at once. Cost: O(rows · length^q) for q quantified variables besides the newest event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from trendloom.expr.arrays import Array, narrow
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Which
from trendloom.expr.operators import average
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.matching.automaton import Automaton
from trendloom.model.schema import Kind


def row_aggregate(function: str, column: Vector | None, events: Array, mask: Array) -> Vector:
    """One aggregate per row over the events where `mask` is set; NULL values are skipped.

    What `avg(b[].x)` is for every partial match at once. O(rows · columns). Integer sums are exact: they leave int64
    for Python integers where they could overflow.
    """
    if column is None:
        return Vector(Kind.INT, mask.sum(axis=1))
    if column.valid is not None:
        mask = mask & column.valid[events]
    count = mask.sum(axis=1)
    if function == "count":
        return Vector(Kind.INT, count)
    valid = None if (count > 0).all() else count > 0
    values = column.values[events]
    if function in ("min", "max"):
        return replace(column, values=_extreme(function, values, mask), valid=valid)
    added = _total(values, mask)
    total = replace(column, values=narrow(added, None) if added.dtype == object else added, valid=valid)
    return average(total, count) if function == "avg" else total


def _extreme(function: str, values: Array, mask: Array) -> Array:
    best = np.array(values[:, 0], copy=True)
    known = mask[:, 0].copy()
    better = np.less if function == "min" else np.greater
    for column in range(1, values.shape[1]):
        here = values[:, column]
        take = mask[:, column] & (~known | better(here, best))
        best[take] = here[take]
        known |= mask[:, column]
    return best


def _total(values: Array, mask: Array) -> Array:
    if values.dtype == np.int64 and values.size:
        most = max(abs(int(values.min())), abs(int(values.max())))
        if most * values.shape[1] >= 2**62:
            values = values.astype(object)
    total = np.zeros(len(values), values.dtype)
    for column in range(values.shape[1]):
        total = total + np.where(mask[:, column], values[:, column], 0)
    return total


@dataclass(frozen=True, eq=False)
class Paths:
    """`events[r, c]`, `steps[r, c]`: the c-th event of row r. Columns before `own` are context.

    `root[r]`: which root the row grew from. `rounds_around`: for parts around the NOT, the round it lies in.
    """

    automaton: Automaton
    block: Block
    scope: int
    own: int
    events: Array
    steps: Array
    root: Array
    rounds_around: dict[int, Array]

    def __len__(self) -> int:
        return len(self.events)

    @property
    def length(self) -> int:
        """The number of events of this scope's own partial match."""
        return int(self.events.shape[1]) - self.own

    def take(self, rows: Array) -> Paths:
        """Some of the rows."""
        around = {part: rounds[rows] for part, rounds in self.rounds_around.items()}
        return replace(
            self, events=self.events[rows], steps=self.steps[rows], root=self.root[rows], rounds_around=around
        )

    def extend(self, rows: Array, events: Array, step: int) -> Paths:
        """The chosen rows, each with one more event."""
        taken = self.take(rows)
        new_steps = np.full((len(rows), 1), step, self.steps.dtype)
        return replace(
            taken,
            events=np.concatenate([taken.events, events[:, None]], axis=1),
            steps=np.concatenate([taken.steps, new_steps], axis=1),
        )

    @cached_property
    def instants(self) -> Array:
        return self.block.instant[self.events]

    def binding(self, variable: str) -> Array:
        """Matrix: which columns bind the variable, as this scope sees it."""
        return self.automaton.binds(self.scope, variable)[self.steps]

    def rounds(self, part: int) -> Array:
        """Matrix: the round of a part each own column lies in; −1 outside. Context columns: that of the outer match."""
        steps = self.steps
        if part in self.rounds_around:
            mine = np.full(steps.shape, -1, np.int64)
            mine[:, : self.own] = _rounds(self.automaton, steps[:, : self.own], part)
            mine[:, self.own :] = self.rounds_around[part][:, None]
            return mine
        mine = np.full(steps.shape, -1, np.int64)
        mine[:, self.own :] = _rounds(self.automaton, steps[:, self.own :], part)
        return mine


def _rounds(automaton: Automaton, steps: Array, part: int) -> Array:
    counted = np.cumsum(automaton.starts_round[part][steps], axis=1)
    return np.where(automaton.inside[part][steps], counted, -1)


# ------------------------------------------------------------------------------------------------- rules


def holds(rule: Rule, paths: Paths, *, newest: bool) -> Array:
    """Per row, whether the rule is true: of the choices that include the newest event, or of all choices."""
    good = np.ones(len(paths), np.bool_)
    if len(paths) == 0:
        return good
    if not rule.shape.variables:
        return np.broadcast_to(is_true(evaluate(rule.expr, _no_leaf)), len(paths)).copy()
    applied = _AppliedRule(rule, paths)
    for choice in applied.choices(newest):
        rows = np.flatnonzero(choice.possible & good)
        if len(rows):
            good[rows[~is_true_at(rule.expr, choice, rows)]] = False
    return good


def is_true_at(expr: Expr, choice: _Assignment, rows: Array) -> Array:
    found = is_true(evaluate(expr, lambda leaf: choice.leaf(leaf, rows)))
    return np.broadcast_to(found, len(rows))


def _no_leaf(expr: Expr) -> Vector:
    raise AssertionError(f"a rule without variables has the leaf {expr}")


@dataclass(frozen=True, eq=False)
class _Assignment:
    """One choice of columns for the quantifiers; `possible` says for which rows it is one."""

    applied: _AppliedRule
    columns: dict[str, int]  # "each b" → column, "index" → column, "left"/"right" → columns of a NEXT pair
    possible: Array
    window: Array | None  # columns that count (those of the round), per row; None: all

    def leaf(self, leaf: Expr, rows: Array) -> Vector:
        paths = self.applied.paths
        if isinstance(leaf, Attribute):
            return paths.block.columns[leaf.column].take(self._event(leaf, rows))
        assert isinstance(leaf, Aggregate | Extent)
        mask = self._mask(leaf.variable, rows, before=isinstance(leaf, Aggregate) and leaf.before)
        events = paths.events[rows]
        if isinstance(leaf, Extent):
            times = paths.block.time[events]
            low = np.where(mask, times, np.iinfo(np.int64).max).min(axis=1)
            high = np.where(mask, times, np.iinfo(np.int64).min).max(axis=1)
            return Vector(leaf.kind, high - low)
        column = None if leaf.column is None else paths.block.columns[leaf.column]
        return row_aggregate(leaf.function, column, events, mask)

    def _event(self, leaf: Attribute, rows: Array) -> Array:
        """The event that an attribute is read from, per row."""
        events = self.applied.paths.events
        if leaf.which is Which.NEXT:
            return events[rows, self.columns["right"]]
        if leaf.which is Which.EACH:
            column = self.columns["left"] if "left" in self.columns else self.columns[f"each {leaf.variable}"]
            return events[rows, column]
        if leaf.which is Which.CURRENT:
            return events[rows, self.columns["index"]]
        mask = self._mask(leaf.variable, rows, before=leaf.which is Which.PREVIOUS)
        if leaf.which is Which.FIRST:
            return events[rows, mask.argmax(axis=1)]
        return events[rows, mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)]

    def _mask(self, variable: str, rows: Array, *, before: bool) -> Array:
        """The columns of a variable that count; `before`: of them those before the current event."""
        mask = self.applied.binding[variable][rows]
        if self.window is not None:
            mask = mask & self.window[rows]
        return mask & (np.arange(mask.shape[1]) < self.columns["index"]) if before else mask


class _AppliedRule:
    """A rule on some paths: which columns its variables bind, and which choices there are."""

    def __init__(self, rule: Rule, paths: Paths) -> None:
        self.rule, self.paths, self.shape = rule, paths, rule.shape
        self.binding = {name: paths.binding(name) for name in self.shape.variables}
        self.rounds = None if rule.part is None else paths.rounds(rule.part)

    def choices(self, newest: bool) -> Iterator[_Assignment]:
        """The choices that some row allows; `newest`: those that include the newest event."""
        for columns, at, possible in self._columns(newest):
            window = None
            if self.rounds is not None:
                window = (self.rounds == self.rounds[:, at, None]) & (self.rounds >= 0)
                possible = np.logical_and.reduce([possible, *(window[:, column] for column in columns.values())])
            bound = [self.binding[name] for name in self.shape.variables]
            if self.shape.looks_back:
                assert self.shape.index is not None
                before = np.arange(self.paths.events.shape[1]) < columns["index"]
                bound.append(self.binding[self.shape.index] & before)
            for mask in bound:
                possible = possible & (mask if window is None else mask & window).any(axis=1)
            if possible.any():
                yield _Assignment(self, columns, possible, window)

    def _columns(self, newest: bool) -> Iterator[tuple[dict[str, int], int, Array]]:
        """Columns for the quantifiers, one of which the round is that of the rule, and the rows in which they fit."""
        variables = {f"each {name}": name for name in sorted(self.shape.each)}
        if self.shape.index is not None:
            variables["index"] = self.shape.index
        width = self.paths.events.shape[1]
        if self.shape.pair is not None:
            yield from self._pairs(width, newest)
        elif not variables:
            yield from self._wholes(width)
        else:
            binding = [self.binding[name] for name in variables.values()]
            tables = [[column for column in range(width) if mask[:, column].any()] for mask in binding]
            for columns in product(*tables):
                if not newest or width - 1 in columns:
                    fits = [mask[:, column] for mask, column in zip(binding, columns, strict=True)]
                    yield dict(zip(variables, columns, strict=True)), columns[0], np.logical_and.reduce(fits)

    def _pairs(self, width: int, newest: bool) -> Iterator[tuple[dict[str, int], int, Array]]:
        """Neighbours that NEXT relates."""
        assert self.shape.pair is not None
        left, right = (self.binding[name] for name in self.shape.pair)
        at = self.paths.instants
        first = self.paths.own
        for b in range(width - 1 if newest else first, width):
            before = np.where(at[:, first:] < at[:, b, None], at[:, first:], np.iinfo(np.int64).min).max(axis=1)
            for a in range(first, width):
                if a != b:
                    adjacent = left[:, a] & right[:, b] & (at[:, a] == before) & (at[:, a] < at[:, b])
                    yield {"left": a, "right": b}, b, adjacent

    def _wholes(self, width: int) -> Iterator[tuple[dict[str, int], int, Array]]:
        """No quantifier: once per match, or once per round of its part."""
        if self.rounds is None:
            yield {}, 0, np.ones(len(self.paths), np.bool_)
            return
        for column in range(width):
            fresh = self.rounds[:, column] >= 0
            if column:
                fresh &= ~(self.rounds[:, :column] == self.rounds[:, column, None]).any(axis=1)
            yield {}, column, fresh


def ready(rule: Rule, paths: Paths, variables: frozenset[str]) -> Array:
    """Per row, whether these variables of the rule are bound (in the round of the rule's part)."""
    found = np.ones(len(paths), np.bool_)
    rounds = None if rule.part is None else paths.rounds_around.get(rule.part)
    for name in variables:
        mask = paths.binding(name)
        if rounds is not None and rule.part is not None:
            mask = mask & (paths.rounds(rule.part) == rounds[:, None])
        found &= mask.any(axis=1)
    return found


def without_context(automaton: Automaton, block: Block, scope: int, count: int) -> Paths:
    """Empty partial matches to grow from."""
    events = np.zeros((count, 0), np.int64)
    return Paths(automaton, block, scope, 0, events, events.astype(np.int32), np.arange(count), {})


def whole_keys(automaton: Automaton, block: Block, scope: int) -> tuple[Paths, Array, Array]:
    """An empty partial match for every key, and the events [low, high) of each."""
    return without_context(automaton, block, scope, block.keys), block.key_starts[:-1], block.key_starts[1:]


def joined_paths(pieces: list[Paths]) -> Paths:
    """Paths of one length and scope in one matrix; they have no context."""
    return replace(
        pieces[0],
        events=np.concatenate([piece.events for piece in pieces]),
        steps=np.concatenate([piece.steps for piece in pieces]),
        root=np.concatenate([piece.root for piece in pieces]),
    )


def same_bindings(paths: Paths) -> Array:
    """Numbers that are equal for rows with the same events at the same positions."""
    rows = np.concatenate([paths.root[:, None], paths.events, paths.automaton.position_of[paths.steps]], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
