"""How the rows of a query become a series in an archive: when each row is, what its partition is, what it measures.

A row of a window is at the window's end; a row of a match is at the first time that RETURN has, or at the last of its
events where it returns all of them. Rows without any time cannot be drawn over time, nor kept by chunk: such a query is
refused, with the way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.archive.catalog import AT, ArchivedQuery
from trendloom.archive.partitions import MEASURES, PartitionRows, candidates_for_dimensions, dimensions_of_events
from trendloom.errors import BindError, OptionError, did_you_mean, option
from trendloom.expr import nodes
from trendloom.expr.vectors import kind_of
from trendloom.frontend.tql.printer import write
from trendloom.logical.plan import Aggregation, Plan, Value
from trendloom.model.schema import Kind
from trendloom.model.selection import Trends
from trendloom.pattern.algebra import atoms
from trendloom.planner.plan import Physical
from trendloom.runtime.result_columns import aggregate_schema, row_schema

EVENTS, WINDOW_START, WINDOW_END = "events", "window_start", "window_end"
UNNAMED = "query"
"""The name of a query that has none."""


@dataclass(frozen=True)
class ArchivedSeries:
    """A query for the archive; `at`: the column that says when rows are; `columns`: all of its rows.

    `candidates`: the columns of its events that may turn out to be dimensions of its partitions.
    """

    query: ArchivedQuery
    at: str
    time: str
    type: str
    columns: tuple[str, ...]
    candidates: tuple[str, ...] = ()

    def placed(self, rows: pa.Table) -> pa.Table:
        """Rows of the query with their times."""
        rows = _narrowed(rows.select([name for name in rows.column_names if name in self.columns]))
        if AT in rows.column_names:
            return rows
        return rows.append_column(AT, self._last_times(rows) if self.at == EVENTS else rows.column(self.at))

    def _last_times(self, rows: pa.Table) -> pa.ChunkedArray:
        """The time of the last event of each row."""
        lists = rows.column(EVENTS).combine_chunks()
        last = pc.subtract(pc.cumulative_sum(pc.list_value_length(lists).cast(pa.int64())), 1)
        times = pc.struct_field(pc.list_flatten(lists), self.time)
        return pa.chunked_array([times.take(last)])

    def dimensions(self, events: pa.Table) -> PartitionRows:
        """The dimension values of the partitions of this query in events of any types."""
        names = events.column(self.type)
        ours = events.filter(pc.is_in(names, value_set=pa.array(self.query.types, names.type)))
        return dimensions_of_events(ours, self.query.keys, [one for one in self.candidates if one in ours.column_names])


def series_of(
    physical: Physical, arrow: pa.Schema, numeric: str, name: str | None, dimensions: Sequence[str] = ()
) -> ArchivedSeries:
    """How rows of a planned query go into an archive; `arrow`: the columns of events, `name`: where it has none."""
    plan = physical.plan
    scanned = pa.schema([arrow.field(one) for one in plan.scan.columns])
    schema = aggregate_schema(plan, scanned, numeric) if physical.aggregates else row_schema(physical, scanned)
    at, keys = _moment_of(plan), plan.group_by if physical.aggregates else plan.partition
    _refuse_names(plan, at, keys)
    kinds = {one.name: str(kind_of(one.type)) for one in schema}
    query = ArchivedQuery(
        plan.name or name or UNNAMED,
        write(plan.query),
        keys,
        tuple(_measured_columns(plan, schema, at)),
        kinds,
        tuple(dict.fromkeys(atom.type for atom in atoms(plan.pattern))),
        tuple(dict.fromkeys(_measures(plan))),
    )
    left_out = {*keys, *MEASURES, plan.schema.times, plan.schema.type}
    candidates = candidates_for_dimensions(arrow, left_out, dimensions) if keys else []  # one partition has none
    return ArchivedSeries(query, at, plan.schema.times, plan.schema.type, tuple(schema.names), tuple(candidates))


def _narrowed(rows: pa.Table) -> pa.Table:
    """Whole numbers in 64 bits where they fit, whatever engine counted: Spark's are decimals."""
    for at, one in enumerate(rows.schema):
        if pa.types.is_decimal(one.type) and one.type.scale == 0:
            try:
                rows = rows.set_column(at, one.name, rows.column(at).cast(pa.int64()))
            except pa.ArrowInvalid:
                continue
    return rows


def check_dimensions(dimensions: Sequence[str], arrow: pa.Schema) -> None:
    """Refuse dimensions that are no columns, or not of values that can be compared."""
    for name in dimensions:
        if name not in arrow.names:
            raise OptionError(
                f"there is no column '{name}' for a dimension of partitions",
                hint=f"{did_you_mean(name, arrow.names)} ({option('dimensions')} names it)",
            )
        if kind_of(arrow.field(name).type) is Kind.OTHER:
            raise OptionError(
                f"column '{name}' holds values that cannot be compared: {arrow.field(name).type}",
                hint=f"{option('dimensions')} takes columns of texts, numbers or booleans",
            )


# ------------------------------------------------------------------------------------------------ when rows are


def _moment_of(plan: Plan) -> str:
    if plan.window.sliding:
        return WINDOW_END
    if isinstance(plan.output, Trends):
        return EVENTS
    found = next((value.name for value in plan.output.values if _is_time(value, plan)), None)
    if found is not None and not isinstance(plan.output, Aggregation):
        return found
    way = "add a time to RETURN, e.g. that of the last event"
    if isinstance(plan.output, Aggregation):
        way = "give it windows, e.g. WITHIN 1 minute SLIDE 1 minute"
    raise _refused(plan, "its rows do not say when they are, so an archive cannot keep them by time", way)


def _is_time(value: Value, plan: Plan) -> bool:
    """Whether a value is a time: of a column of timestamps, or of the column of times, where these are numbers."""
    expr = value.expr
    if isinstance(expr, nodes.Aggregate):
        return expr.column == plan.schema.times and expr.function in ("min", "max")
    return value.kind is Kind.TIME or (isinstance(expr, nodes.Attribute) and expr.column == plan.schema.times)


def _refuse_names(plan: Plan, at: str, keys: Sequence[str]) -> None:
    names = [] if isinstance(plan.output, Trends) else [value.name for value in plan.output.values]
    if AT in (*keys, *names) and at != AT:
        raise _refused(plan, f"it gives out a column '{AT}', which archives use", "rename it with AS")
    taken = [name for name in keys if name in MEASURES]
    if taken:
        raise _refused(
            plan, f"'{taken[0]}' is a column of the table of partitions, so no attribute may be called so",
            "rename the column of the events",
        )  # fmt: skip


def _refused(plan: Plan, message: str, hint: str) -> BindError:
    found = BindError(message, plan.query.clause("RETURN"), hint=hint, text=plan.query.text)
    error = found.of_query(plan.name)
    assert isinstance(error, BindError)
    return error


# ------------------------------------------------------------------------------------------------ what it measures


def _measured_columns(plan: Plan, schema: pa.Schema, at: str) -> Iterator[str]:
    """The columns of numbers, without those that say when and whose."""
    values = () if isinstance(plan.output, Trends) else plan.output.values
    kinds = {value.name: value.kind for value in values}
    times = {value.name for value in values if _is_time(value, plan)}
    without = {at, WINDOW_START, WINDOW_END, *times, *plan.partition, *plan.group_by}
    for one in schema:
        kind = kinds.get(one.name, kind_of(one.type))
        if one.name not in without and kind.numeric and kind is not Kind.NULL:
            yield one.name


def _measures(plan: Plan) -> Iterator[tuple[str, str | None]]:
    """Types of events, and what RETURN reads of them; None: it counts them."""
    if isinstance(plan.output, Trends):
        return
    by_position = {atom.position: atom.type for atom in atoms(plan.pattern)}
    by_variable: dict[str, list[str]] = {}
    for atom in atoms(plan.pattern):
        by_variable.setdefault(atom.variable, []).append(atom.type)
    matched = [atom.type for atom in atoms(plan.pattern, negated=False)]
    for value in plan.output.values:
        for node in nodes.walk(value.expr):
            if isinstance(node, nodes.Total):
                types = matched if node.positions is None else [by_position[one] for one in node.positions]
                yield from ((type_, node.column) for type_ in types)
            elif isinstance(node, nodes.Attribute | nodes.Aggregate) and node.column != plan.schema.times:
                yield from ((type_, node.column) for type_ in by_variable.get(node.variable, ()))
