"""Run the queries of a text over one stream on the engine asked for, one query after another.

Everything that can be refused is refused before the first query runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.engines.memory import bytes_of
from trendloom.engines.telling import Warn, tell_warnings, warn_in_python
from trendloom.errors import OptionError, QueryError, QueryWarning, did_you_mean, option
from trendloom.io.events import Events, prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.io.read import Opened, open_events
from trendloom.lang.parser import parse
from trendloom.lang.tree import Query
from trendloom.model.schema import Schema
from trendloom.model.zone import zone_named
from trendloom.physical.limits import MOST_TRENDS, Limits
from trendloom.plan.bind import bind
from trendloom.plan.logical import Aggregation, Plan
from trendloom.plan.patterns import events_of
from trendloom.plan.workload import Workload

if TYPE_CHECKING:
    from trendloom.engines.events import Shared
    from trendloom.physical.plan import Physical

ENGINES = ("local", "spark", "reference")
NUMERIC = ("exact", "float", "log")


class Columns(TypedDict):
    """Which columns of the events hold their time and type, and how they are read."""

    time: str
    type: str
    time_unit: str | None
    time_low: str | None
    time_high: str | None
    order: tuple[str, ...]
    time_zone: str | None
    query_types: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """How to read the events and run the queries: the options of the command line."""

    engine: str = "local"
    time: str = "time"
    type: str = "type"
    time_unit: str | None = None
    time_low: str | None = None
    time_high: str | None = None
    numeric: str = "exact"
    limit: int | None = None
    query: str | None = None
    master: str | None = None
    memory_limit: str | int | None = None
    max_trends: int = MOST_TRENDS
    order: tuple[str, ...] = ()
    schema: str | None = None
    time_zone: str | None = None
    threads: int | None = None
    query_types: tuple[str, ...] = ()  # no option of a caller's: the types that the queries name, see `for_queries`

    def __post_init__(self) -> None:
        for name, value, known in (("engine", self.engine, ENGINES), ("numeric", self.numeric, NUMERIC)):
            if value not in known:
                raise OptionError(f"there is no {name} '{value}'", hint=did_you_mean(value, known))
        for name, number in (("limit", self.limit), ("max_trends", self.max_trends), ("threads", self.threads)):
            if number is not None and number < 1:
                raise OptionError(f"{option(name)} must be at least 1")
        bytes_of(self.memory_limit)
        if self.time_zone is not None:
            zone_named(self.time_zone)
        if self.numeric != "exact" and self.engine == "reference":
            raise OptionError("the reference engine has exact numbers only", hint="use another engine")

    @property
    def limits(self) -> Limits:
        """What the run may use and give out."""
        return Limits(bytes_of(self.memory_limit), self.max_trends)

    def columns(self) -> Columns:
        """The options that say how the events are read."""
        return {
            "time": self.time,
            "type": self.type,
            "time_unit": self.time_unit,
            "time_low": self.time_low,
            "time_high": self.time_high,
            "order": self.order,
            "time_zone": self.time_zone,
            "query_types": self.query_types,
        }

    def for_queries(self, queries: Sequence[Query]) -> Options:
        """The options with what reading the events must know of the queries."""
        named = dict.fromkeys(event.type for query in queries for event in events_of(query.pattern))
        return replace(self, query_types=tuple(named))


@dataclass(frozen=True)
class Watch:
    """What a caller wants to hear while queries run."""

    progress: Callable[[int], None] | None = None  # how many matches were found so far
    unsorted: Callable[[], None] | None = None
    foreseen: Callable[[str], None] | None = None  # how many matches there will be
    starting: Callable[[], AbstractContextManager[None]] = nullcontext  # around the start of Spark
    warn: Warn = warn_in_python
    compiling: Callable[[str | None], None] | None = None  # what is compiled, and None when that is over
    beforehand: Callable[[str], None] = lambda text: warn_in_python(QueryWarning(text))  # what is about to take long


UNWATCHED = Watch()


@dataclass(frozen=True, eq=False)
class Answer:
    """One query of the workload and its rows, computed as they are read.

    `passed` says how many events of each type pass the conditions on them alone; None where times are imprecise.
    """

    plan: Plan
    batches: Iterator[pa.RecordBatch] = field(repr=False)
    passed: Callable[[], str] | None = field(default=None, repr=False)

    def without_rows(self) -> str:
        """What to say where there is no row: that is an answer, too, but often not the one that was hoped for."""
        having = isinstance(self.plan.output, Aggregation) and self.plan.output.having is not None
        what = "no row: there is no match, or none of a group that HAVING keeps" if having else "no match"
        passed = "" if self.passed is None else f"; events that pass the conditions on them alone: {self.passed()}"
        return f"{what}{passed}\nhint: explain with {option('analyze', True)} says how far matching gets, what stops it"


def columns_named(order: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of `order`: one name, several, or several in one text with commas between them."""
    texts = [order] if isinstance(order, str) else list(order or ())
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def queries_of(text: str, name: str | None = None) -> tuple[Query, ...]:
    """The queries of a text, or the one of that name."""
    queries = parse(text)
    if name is None:
        return queries
    chosen = tuple(query for query in queries if query.name == name)
    if not chosen:
        names = [query.name for query in queries if query.name]
        raise OptionError(
            f"there is no query '{name}'", hint=did_you_mean(name, names) or "the text has one unnamed query"
        )
    return chosen


def is_spark_frame(source: object) -> bool:
    """Whether this is a DataFrame of Spark's, classic or of Spark Connect; loads nothing to find out."""
    return type(source).__module__.partition(".")[0] == "pyspark" and hasattr(source, "sparkSession")


def opened(source: object, options: Options) -> Opened:
    """The source, found and understood as the options say, before its events are read."""
    return open_events(source, schema=options.schema, time_zone=options.time_zone)


def load(source: object, options: Options) -> Events:
    """Read and check a stream of events."""
    return prepare(opened(source, options).read(), **options.columns())


def schema_of_columns(columns: pa.Schema, options: Options) -> Schema:
    """What columns of these types mean; nobody has seen an event, so nothing is said of the types present."""
    events = prepare(columns.empty_table(), **options.columns())
    return replace(events.schema, present=None)


def load_needed(queries: tuple[Query, ...], source: object, options: Options) -> Events:
    """Read and check a stream, of Parquet only the columns that the queries can need."""
    from trendloom.optimize import optimize

    found = opened(source, options)
    if not isinstance(found, ParquetFiles) or options.type not in found.columns.names:
        return load(found, options)  # whether another column holds the types is told by all of them
    whole = schema_of_columns(found.columns, options)
    try:
        plans = [optimize(bind(query, whole)) for query in queries]
    except QueryError:
        return load(found, options)  # with the values at hand the binder knows better
    needed = {name for plan in plans for name in plan.scan.columns}
    events = prepare(found.read(sorted(needed)), **options.columns())
    columns = tuple(events.schema.column(c.name) or c for c in whole.columns)
    return replace(events, schema=replace(events.schema, columns=columns))


def _warning_of_infinity(answer: Answer, watch: Watch) -> Answer:
    """The same answer; whoever reads it is told once of aggregates that doubles cannot hold."""

    totals = [value.name for value in answer.plan.output.values] if isinstance(answer.plan.output, Aggregation) else []

    def told() -> Iterator[pa.RecordBatch]:
        infinite: set[str] = set()
        for batch in answer.batches:
            infinite |= {name for name in totals if _infinite(batch.column(name))}
            yield batch
        if infinite:
            listed = ", ".join(sorted(infinite))
            warning = QueryWarning(f"{listed}: infinite in some rows; {option('numeric', 'log')} holds any size")
            watch.warn(warning, answer.plan.name)

    return replace(answer, batches=told())


def _infinite(column: pa.Array) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_inf(column)).as_py())


def answers(text: str, source: object, options: Options, watch: Watch = UNWATCHED) -> list[Answer]:
    """The queries of a text over a stream; nothing has run yet when this returns, but everything is checked."""
    queries = queries_of(text, options.query)
    reading, found = _answers(queries, source, options.for_queries(queries), watch)
    tell_warnings(reading, [answer.plan for answer in found], watch.warn)
    return [_warning_of_infinity(answer, watch) for answer in found] if options.numeric == "float" else found


def _answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """What reading the events brought up, and the answers."""
    if options.engine == "spark":
        from trendloom.engines.spark.prerequisites import require_spark

        require_spark()
        from trendloom.engines.spark import workload as on_spark

        return on_spark.answers(queries, source, options, watch)
    if is_spark_frame(source):
        raise OptionError(
            f"the {options.engine} engine does not read a DataFrame of Spark's",
            hint=f"use {option('engine', 'spark')}, or give df.toArrow()",
        )
    events = load_needed(queries, source, options)
    plans = [bind(query, events.schema) for query in queries]
    if options.engine == "reference":
        from trendloom.engines import oracle

        return events.warnings, [
            Answer(p, oracle.run(p, events, limit=options.limit), _passed(p, events)) for p in plans
        ]
    from trendloom.engines.events import Shared
    from trendloom.physical.plan import plan_physically

    physical = [plan_physically(plan, options.limits) for plan in plans]
    shared = Shared(Workload(tuple(one.plan for one in physical)).shared_attributes)
    both = zip(plans, physical, strict=True)
    found = [Answer(one.plan, _local(one, events, options, watch, shared), _passed(plan, events)) for plan, one in both]
    return events.warnings, found


def _passed(plan: Plan, events: Events) -> Callable[[], str] | None:
    def described() -> str:
        from trendloom.engines.passed import describe_passed

        return describe_passed(plan, events)

    return None if plan.schema.imprecise else described


def _local(
    physical: Physical, events: Events, options: Options, watch: Watch, shared: Shared
) -> Iterator[pa.RecordBatch]:
    from trendloom.engines import local
    from trendloom.engines.equal_times import Ties, warning_of_ties
    from trendloom.kernels.compiled import hearing

    def tied(ties: Ties) -> None:
        warning = warning_of_ties(physical.plan, ties)
        if warning is not None:
            watch.warn(warning, physical.plan.name)

    with nullcontext() if watch.compiling is None else hearing(watch.compiling):
        yield from local.run(
            physical,
            events,
            numeric=options.numeric,
            limit=options.limit,
            progress=watch.progress,
            unsorted=watch.unsorted,
            foreseen=watch.foreseen,
            tied=tied,
            beforehand=watch.beforehand,
            threads=options.threads,
            shared=shared,
        )


def table_of(found: list[Answer]) -> pa.Table:
    """All rows as one table; a workload's rows carry the name of their query."""
    tables = []
    for answer in found:
        table = pa.Table.from_batches(list(answer.batches))
        if answer.plan.name is not None:
            names = pa.array([answer.plan.name] * table.num_rows, pa.string())
            table = table.add_column(0, "query", names)
        tables.append(table)
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")
