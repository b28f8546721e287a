"""Look at queries without running them: CHECK and EXPLAIN.

Both need no more than a schema. For Parquet that is in the footers of the files; of the events the type column alone is
read, for the set of types, and whole numbers of time whose unit is not given; of a workload that is explained also the
keys, for their number. (Where a kernel builds something of the events first, as a graph, it is shown; for that they are
read.)
Without any events a schema is *assumed*: every attribute that the query names is there and fits everywhere, so what is
still wrong is wrong for all data (unknown variables, a NOT out of place, ...).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendloom.errors import BindError, OptionError, PlanError, QueryWarning, option
from trendloom.frontend import tree
from trendloom.frontend.tql.printer import write
from trendloom.frontend.tree import attributes_of
from trendloom.io.convert import parse_schema
from trendloom.io.events import Events, check_order, doubts_of_times, short_unit
from trendloom.io.parquet import ParquetFiles
from trendloom.io.read import refuse_schema
from trendloom.logical.bind import bind, bind_workload, too_deep
from trendloom.logical.bind.imprecise_time import requires_imprecise_time
from trendloom.logical.bind.workload import for_every_query
from trendloom.logical.display import Branch, describe_logical, draw
from trendloom.logical.plan import Attributes, Plan
from trendloom.logical.statistics import UNKNOWN, KeySpread, Statistics, StatisticsOf, nothing_known
from trendloom.model.imprecision import ImpreciseOptions
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis
from trendloom.optimizer import optimize
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.options import Options
from trendloom.runtime.reading import (
    for_queries,
    is_spark_frame,
    load,
    load_needed,
    opened,
    queries_of,
    schema_of_columns,
)
from trendloom.streaming.statistics import Figures, figures_at, statistics_of_batches

if TYPE_CHECKING:
    from trendloom.planner.plan import Physical
    from trendloom.planner.sharing.groups import Considered
    from trendloom.planner.workload import PhysicalWorkload

ASSUMED = "no events given: every attribute the query names is assumed to be there, of whatever kind is needed"


def check_text(text: str, schema_or_events: object, options: Options) -> list[QueryWarning]:
    """The warnings of all queries of a text; raises `QueryError` that names those that are wrong."""
    reading, plans, _ = _plans(text, schema_or_events, options)
    return [*reading, *(warning for plan in plans for warning in plan.warnings)]


@dataclass(frozen=True)
class Explained:
    """Queries explained: as text, and as the plans that a picture is drawn of.

    `shared`: the alternatives that were considered for each group of queries that may share work.
    """

    text: str
    plans: tuple[Plan, ...]
    shared: tuple[Considered, ...]


def explain_queries(
    text: str, events: object, options: Options, *, analyze: bool = False, checkpoint: str | None = None
) -> Explained:
    """The plans of all queries of a text; `analyze` also runs them and shows what that took.

    `checkpoint`: that of a live stream, whose earlier batches give statistics.
    """
    if analyze and events is None:
        raise OptionError("analyze runs the query, so it needs events", hint=f"give {option('events', 'FILE')}")
    reading, plans, source = _plans(text, events, options)
    earlier = None if checkpoint is None else _earlier(checkpoint)
    known = _remembered(partial(_statistics, source=source, earlier=earlier))
    sections = [_section(plan, options.engine, known) for plan in plans]
    if events is not None:
        with_events = [_with_events(plan, events, options, analyze) for plan in plans]
        sections = ["\n\n".join([section, *more]) for section, more in zip(sections, with_events, strict=True)]
    assumed = [ASSUMED] if events is None and options.schema is None else []
    remarks = ["\n".join(f"-- {line}" for line in one.splitlines()) for one in (*assumed, *map(str, reading))]
    # A batch on Spark is planned before its events are read.
    of_workload = _with_types_and_keys(known, source) if options.engine != "spark" or earlier else nothing_known
    workload, shared = _shared(plans, events if analyze else None, options, of_workload)
    sections += [] if workload is None else [_workload_section(workload, options.engine, shared)]
    return Explained("\n\n".join([*remarks, *sections]), tuple(plans), shared)


def _shared(
    plans: list[Plan], run_over: object, options: Options, known: StatisticsOf
) -> tuple[PhysicalWorkload | None, tuple[Considered, ...]]:
    """The queries together, and the alternatives for those that may share work; measured, if there are events."""
    workload = _workload(plans, options, known)
    if workload is None or run_over is None or not workload.shared_groups:
        return workload, () if workload is None else tuple(one.considered for one in workload.shared_groups)
    from trendloom.engines.measured_run import measured
    from trendloom.runtime.statistics import statistics_of_stream

    queries = tuple(plan.query for plan in plans)
    loaded = load_needed(queries, run_over, for_queries(options, queries))
    workload = _workload(plans, options, statistics_of_stream(loaded))
    return workload, () if workload is None else measured(workload, loaded)


def _workload_section(workload: PhysicalWorkload, engine: str, shared: Sequence[Considered]) -> str:
    """The section about what the queries share."""
    from trendloom.planner.sharing.display import describe_sharing

    below = (_steps_on(engine).describe_workload(workload), *map(describe_sharing, shared))
    return "\n".join(draw(Branch("Workload", below=below)))


def _workload(plans: list[Plan], options: Options, known: StatisticsOf) -> PhysicalWorkload | None:
    """The queries together; None for one alone, or where not all of them can run."""
    from trendloom.runtime.planning import plan_queries

    if len(plans) < 2 or options.engine == "reference":
        return None
    try:
        return plan_queries(tuple(plans), options.limits, known)
    except PlanError:
        return None


def _with_types_and_keys(known: StatisticsOf, source: Events | ParquetFiles | None) -> StatisticsOf:
    """The same statistics, with the numbers of events by type and of keys in files, whose columns are read for that."""
    if not isinstance(source, ParquetFiles):
        return known
    from trendloom.runtime.statistics import spread_in

    @cache
    def counted(column: str) -> dict[str, float]:
        found = source.read([column])[column].value_counts().to_pylist()
        return {str(one["values"]): float(one["counts"]) for one in found if one["values"] is not None}

    @cache
    def spread(attributes: Attributes, schema: Schema) -> KeySpread:
        kinds = {column.name: column.kind for column in schema.columns}
        return spread_in(source.read(list(attributes)), attributes, kinds)

    def more(plan: Plan) -> Statistics:
        found = known(plan)
        attributes = split_by_equality(plan).keys
        keys = {attributes: spread(attributes, plan.schema)} if attributes else {}
        return replace(found, types=found.types or counted(plan.schema.type), keys={**keys, **found.keys})

    return more


def _earlier(checkpoint: str) -> Figures:
    """The figures of a stream so far."""
    found = figures_at(checkpoint)
    if found.batch < 0:
        raise OptionError(
            f"no figures of a stream are kept in {checkpoint}",
            hint="give the folder that `trendloom stream` was started with as its checkpoint",
        )
    return found


def _section(plan: Plan, engine: str, known: StatisticsOf) -> str:
    # loads the kernels, which checking a query does not need
    from trendloom.optimizer.display import describe_optimized

    try:
        statistics = known(plan)
        physical = _physical_on(engine, plan, statistics)
        trees = (describe_logical(plan), describe_optimized(plan, statistics), physical)
        return "\n\n".join([write(plan.query), *("\n".join(draw(tree)) for tree in trees)])
    except RecursionError:  # the plan of a long {n,m}, which runs nevertheless
        raise too_deep(plan.query) from None


def _physical_on(engine: str, plan: Plan, statistics: Statistics) -> Branch:
    from trendloom.planner.display import describe_definitions, describe_physical

    optimized = optimize(plan, statistics)
    if engine == "reference":
        return describe_definitions(optimized)
    return describe_physical(optimized, _steps_on(engine).describe_execution, statistics)


def _steps_on(engine: str) -> Any:
    """The module of an engine that describes its steps."""
    from trendloom.engines.local import plan_steps as local
    from trendloom.engines.spark import plan_steps as spark

    return spark if engine == "spark" else local


def _remembered(known: StatisticsOf) -> StatisticsOf:
    """The same statistics, computed once for each plan."""
    found: dict[int, tuple[Plan, Statistics]] = {}  # with the plan, so that its number stays its own

    def of(plan: Plan) -> Statistics:
        if id(plan) not in found:
            found[id(plan)] = plan, known(plan)
        return found[id(plan)][1]

    return of


def _statistics(plan: Plan, source: Events | ParquetFiles | None, earlier: Figures | None = None) -> Statistics:
    """Statistics of the events that need no further reading."""
    from trendloom.runtime.statistics import statistics_of_events, statistics_of_footers

    if earlier is not None:
        return statistics_of_batches(plan, earlier)
    if isinstance(source, ParquetFiles):
        return statistics_of_footers(source, plan.schema)
    try:
        return UNKNOWN if source is None else statistics_of_events(plan, source)
    except PlanError:
        return UNKNOWN


def _with_events(plan: Plan, events: object, options: Options, analyze: bool) -> list[str]:
    """Sections about the events, which are read for kernels that build something of them, and for `analyze`."""
    if isinstance(events, Schema | pa.Schema):
        return []
    physical = _runnable(plan, options)
    if not analyze and (physical is None or not physical.chosen.builds):
        return []
    from trendloom.engines.measured_run import describe_run, look_at
    from trendloom.runtime.funnel import describe_funnel

    loaded = load_needed((plan.query,), events, for_queries(options, (plan.query,)))
    found = [describe_funnel(plan, loaded)] if analyze else []
    if physical is not None:
        look = look_at(physical, loaded)
        built = look.describe()
        found += [] if built is None else [built]
        if analyze:
            statistics = _statistics(plan, loaded)
            physical = _runnable(plan, options, statistics) or physical
            found.append(describe_run(physical, loaded, statistics, look))
    return ["\n".join(draw(one)) for one in found]


def _runnable(plan: Plan, options: Options, statistics: Statistics = UNKNOWN) -> Physical | None:
    """The plan of the local engine; None on the reference engine, or where no algorithm takes the query."""
    from trendloom.runtime.planning import plan_query

    try:
        return None if options.engine == "reference" else plan_query(plan, options.limits, statistics=statistics)
    except PlanError:
        return None


def _plans(
    text: str, source: object, options: Options
) -> tuple[Sequence[QueryWarning], list[Plan], Events | ParquetFiles | None]:
    """Warnings about the events, the queries bound to them, and the events as far as they were read."""
    queries = queries_of(text, options.query)
    options = for_queries(options, queries)
    if source is None and options.schema is not None:
        columns = pa.schema(list(parse_schema(options.schema).items()))
        return (), bind_workload(queries, schema_of_columns(columns, options)), None
    if source is None:
        return (), for_every_query(queries, lambda query: _bind_assumed(query, options)), None
    reading, schema, found = _looked_at(source, options)
    return reading, bind_workload(queries, schema), found


# ----------------------------------------------------------------------------------------------- schemas


def schema_of(source: object, options: Options) -> tuple[Sequence[QueryWarning], Schema]:
    """Warnings about a stream, and its schema: given, or of an Arrow schema, a file or a frame.

    Events are read only where needed.
    """
    reading, schema, _ = _looked_at(source, options)
    return reading, schema


def _looked_at(source: object, options: Options) -> tuple[Sequence[QueryWarning], Schema, Events | ParquetFiles | None]:
    """As `schema_of`, and the events, or the files whose footers were read."""
    if isinstance(source, Schema | pa.Schema):
        refuse_schema([] if options.schema is None else list(parse_schema(options.schema)), "what was given")
        return (), source if isinstance(source, Schema) else schema_of_columns(source, options), None
    if is_spark_frame(source):
        from trendloom.engines.spark.frames import describe

        frame = describe(source, options.columns())
        return frame.warnings, frame.schema, None
    found = opened(source, options)
    if isinstance(found, ParquetFiles) and options.type in found.columns.names:
        return *_schema_of_parquet(found, options), found
    events = load(found, options)
    return events.warnings, events.schema, events


def _schema_of_parquet(found: ParquetFiles, options: Options) -> tuple[Sequence[QueryWarning], Schema]:
    schema = schema_of_columns(found.columns, options)
    empty = found.without_values()
    columns = tuple(replace(c, kind=Kind.NULL) if c.name in empty else c for c in schema.columns)
    counted, time = options.time_unit is None and not schema.axis.timestamp, schema.times
    looked_at = found.read([options.type, time] if counted else [options.type])
    present = frozenset(name for name in looked_at.column(options.type).unique().to_pylist() if name is not None)
    doubts = doubts_of_times(looked_at, time) if counted else ()
    return doubts, replace(schema, columns=columns, present=present)


# ----------------------------------------------------------------------------------------- without events


def _bind_assumed(query: tree.Query, options: Options) -> Plan:
    """Bind to the first assumed schema that fits; where none does, raise the error of the first.

    Options that do not fit an axis mean that the times are not of it.
    """
    found: list[BindError | OptionError] = []
    for axis in _axes(query, options):
        try:
            return bind(query, _assumed(query, axis, options))
        except (BindError, OptionError) as error:
            found.append(error)
    raise next((error for error in found if isinstance(error, BindError)), found[0])


def _axes(query: tree.Query, options: Options) -> Iterator[TimeAxis]:
    """What the time column may be: timestamps, unless a window is a plain number; else integers, of any unit."""
    lengths = (query.within.within, query.within.slide) if query.within else ()
    if all(length is None or length.unit is not None for length in lengths):
        yield TimeAxis.timestamps()
    yield TimeAxis.integer(short_unit(options.time_unit))
    yield TimeAxis.integer("us")


def _assumed(query: tree.Query, axis: TimeAxis, options: Options) -> Schema:
    imprecise = options.imprecise
    if requires_imprecise_time(query) and not imprecise.imprecise:
        imprecise = ImpreciseOptions("time_low", "time_high")
    imprecision = imprecise.measured(axis)
    moment = Kind.TIME if axis.timestamp else Kind.INT
    known = {options.type: Kind.STRING, **dict.fromkeys(imprecise.bounds or (options.time,), moment)}
    if imprecision is not None:
        known |= {name: Kind.NULL for name in imprecision.columns if name not in known}
    check_order(options.order, pa.schema([(name, pa.null()) for name in options.order]), imprecise=imprecise.imprecise)
    named = dict.fromkeys((*query.group_by, *attributes_of(query), *options.order))
    others = tuple(Column(name, Kind.NULL) for name in named if name not in known and name != "time")
    columns = (*(Column(name, kind, zone=options.time_zone) for name, kind in known.items()), *others)
    return Schema(columns, options.time, options.type, axis, None, None, imprecision, options.order, options.time_zone)
