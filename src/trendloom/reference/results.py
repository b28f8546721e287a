"""From the matches of one window and partition to the rows of RETURN.

Every function here takes bindings (see `matches`), in the words of language.md. A row travels with the key by which
rows are ordered: window, partition or group, then the first and the last event, then everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Total, Which
from trendloom.logical.plan import Aggregation, Plan, Projection
from trendloom.model.selection import Trends
from trendloom.reference.matches import Binding
from trendloom.reference.scalar import Leaf, Number, aggregate, combined, evaluate, extent, total
from trendloom.reference.stream import Bounds, Row, Scalar, StreamEvent, order_key

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Cell:
    """One window of one partition (or group): where a row belongs."""

    window: Bounds | None
    partition: tuple[object, ...]

    @property
    def key(self) -> Key:
        return (self.window or (), tuple(order_key(value) for value in self.partition))


@dataclass(frozen=True)
class Placed:
    """A row and its place in the order of the result."""

    key: Key
    row: Row


def in_order(placed: Iterable[Placed]) -> list[Row]:
    return [item.row for item in sorted(placed, key=lambda item: item.key)]


def without_hidden(bindings: Iterable[Binding], hidden: frozenset[str]) -> list[Binding]:
    """EXISTS: its events are matched, then left out; bindings that then coincide are one, empty ones none."""
    if not hidden:
        return list(bindings)
    reduced = (tuple(pair for pair in binding if pair[1].variable not in hidden) for binding in bindings)
    return list(dict.fromkeys(binding for binding in reduced if binding))


def complete_only(bindings: Sequence[Binding]) -> list[Binding]:
    """COMPLETE: the matches whose set of events is not a proper subset of another match's."""
    sets = [frozenset(event for event, _ in binding) for binding in bindings]
    distinct = set(sets)
    return [
        binding for binding, mine in zip(bindings, sets, strict=True) if not any(mine < other for other in distinct)
    ]


def match_rows(plan: Plan, cell: Cell, bindings: Sequence[Binding]) -> list[Placed]:
    """One row per match, or per group of matches."""
    if plan.output is Trends.COLLAPSED:
        return _collapsed(plan, cell, bindings)
    if plan.output is Trends.COMPLETE:
        bindings = complete_only(bindings)
    return [Placed((*cell.key, *binding_key(binding)), match_row(plan, cell, binding)) for binding in bindings]


def match_row(plan: Plan, cell: Cell, binding: Binding) -> Row:
    if isinstance(plan.output, Projection):
        values = tuple(value_of_match(plan, cell, binding, value.expr) for value in plan.output.values)
        return Row(cell.partition, cell.window, values=values)
    return Row(cell.partition, cell.window, events=_listed(binding))


def binding_key(binding: Binding) -> Key:
    """First instant, last instant, all instants, then the events' values, variables and positions."""
    instants = tuple(event.instant for event, _ in binding)
    return (
        instants[0],
        instants[-1],
        instants,
        tuple(event.content for event, _ in binding),
        tuple((atom.variable, atom.position) for _, atom in binding),
        tuple(event.row for event, _ in binding),
    )


def _listed(binding: Binding) -> tuple[tuple[int, str], ...]:
    return tuple((event.row, atom.variable) for event, atom in binding)


# ------------------------------------------------------------------------------------------- values of one match


def value_of_match(plan: Plan, cell: Cell, binding: Binding, expr: Expr) -> Scalar:
    """A value of one match; a variable that is not bound gives NULL, its count 0."""
    groups = dict(zip(plan.partition, cell.partition, strict=True))
    events: dict[str, list[StreamEvent]] = {}
    for event, atom in binding:
        events.setdefault(atom.variable, []).append(event)

    def read(leaf: Leaf) -> object:
        if isinstance(leaf, Group):
            return groups[leaf.column]
        if isinstance(leaf, Total):
            raise TypeError(f"{leaf.text} has no meaning inside one match")
        if isinstance(leaf, Fold):
            return _folded(leaf, binding)
        return _of_variable(leaf, events.get(leaf.variable, []))

    return evaluate(expr, read)


def _of_variable(leaf: Attribute | Aggregate | Extent, events: Sequence[StreamEvent]) -> object:
    if isinstance(leaf, Extent):
        return extent(events)
    if isinstance(leaf, Aggregate):
        return aggregate(leaf.function, leaf.column, events)
    if not events:
        return None
    return events[-1 if leaf.which is Which.LAST else 0].value(leaf.column)


def _of_event(expr: Expr, event: StreamEvent) -> Scalar:
    def read(leaf: Leaf) -> object:
        assert isinstance(leaf, Attribute)
        return event.value(leaf.column)

    return evaluate(expr, read)


def _folded(fold: Fold, binding: Binding) -> Number | None:
    """What the events of a match give, combined in their order."""
    parts = {part.variable: part for part in fold.parts}
    given = [
        (atom.variable, _of_event(parts[atom.variable].expr, event))
        for event, atom in binding
        if atom.variable in parts
    ]
    known = {variable for variable, value in given if value is not None}
    if any(not part.counts and part.variable not in known for part in fold.parts):
        return None
    values = [cast(Number, value) for _, value in given if value is not None]
    return combined(fold.operator, values, fold.kind) if values else 0


# ----------------------------------------------------------------------------------------------------- collapsed


def _collapsed(plan: Plan, cell: Cell, bindings: Iterable[Binding]) -> list[Placed]:
    """One row per group of matches that agree on the events outside Kleene variables."""
    groups: dict[frozenset[object], list[Binding]] = {}
    for binding in bindings:
        fixed = frozenset(pair for pair in binding if pair[1].variable not in plan.kleene)
        groups.setdefault(fixed, []).append(binding)
    return [_collapsed_row(cell, members) for members in groups.values()]


def _collapsed_row(cell: Cell, members: Sequence[Binding]) -> Placed:
    bound = {(event, atom.variable) for binding in members for event, atom in binding}
    union = sorted(bound, key=lambda pair: (pair[0].instant, pair[0].content, pair[1], pair[0].row))
    instants = tuple(event.instant for event, _ in union)
    content = tuple((event.content, variable, event.row) for event, variable in union)
    events = tuple((event.row, variable) for event, variable in union)
    row = Row(cell.partition, cell.window, events=events, matches=len(members))
    return Placed((*cell.key, instants[0], instants[-1], instants, content), row)


# ---------------------------------------------------------------------------------------- aggregates over matches


def aggregate_row(plan: Plan, output: Aggregation, cell: Cell, total_of: Callable[[Total], Scalar]) -> Placed | None:
    """The row of one group and window that has matches; None where HAVING is not true."""
    groups: Mapping[str, object] = dict(zip(plan.group_by, cell.partition, strict=True))

    def read(leaf: Leaf) -> object:
        if isinstance(leaf, Group):
            return groups[leaf.column]
        if not isinstance(leaf, Total):
            raise TypeError(f"{leaf} has no meaning over all matches")
        return total_of(leaf)

    if output.having is not None and evaluate(output.having, read) is not True:
        return None
    values = tuple(evaluate(value.expr, read) for value in output.values)
    return Placed(cell.key, Row(cell.partition, cell.window, values=values))


def group_of(plan: Plan, cell: Cell) -> Cell:
    """The group of a partition: partitions that agree on the grouping attributes are one group."""
    values = dict(zip(plan.partition, cell.partition, strict=True))
    return Cell(cell.window, tuple(values[name] for name in plan.group_by))


def total_over(leaf: Total, bindings: Sequence[Binding]) -> Scalar:
    """An aggregate over all of these matches."""
    if leaf.positions is None:
        return len(bindings)
    occurrences = [event for binding in bindings for event, atom in binding if atom.position in leaf.positions]
    if leaf.column is None:
        return len(occurrences)
    column = leaf.column
    return total(leaf.function, (event.value(column) for event in occurrences))
