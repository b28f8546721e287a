"""Queries over one stream on an engine: each has a function `answers`, which plans before it runs.

Everything that can be refused is refused before the first query runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.errors import OptionError, QueryWarning, option
from trendloom.frontend.tree import Query
from trendloom.logical.bind.workload import refuse_clashing_columns
from trendloom.logical.plan import Aggregation, Plan
from trendloom.options import Options
from trendloom.runtime.reading import for_queries, is_spark_frame, queries_of
from trendloom.runtime.result_columns import one_table
from trendloom.runtime.warnings import Warn, report_warnings, warn_in_python


@dataclass(frozen=True)
class Watch:
    """Callbacks for the time that queries run."""

    progress: Callable[[int], None] | None = None  # number of matches found so far
    unsorted: Callable[[], None] | None = None
    foreseen: Callable[[str], None] | None = None  # number of matches there will be
    starting: Callable[[], AbstractContextManager[None]] = nullcontext  # around the start of Spark
    warn: Warn = warn_in_python
    compiling: Callable[[str | None], None] | None = None  # name of a function being compiled, and None at the end
    beforehand: Callable[[str], None] = lambda text: warn_in_python(QueryWarning(text))  # what is about to take long


UNWATCHED = Watch()


@contextmanager
def repeatedly(call: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call a function every so many seconds while the body runs, from another thread."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(seconds):
            call()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@dataclass(frozen=True, eq=False)
class Answer:
    """One query of the workload and its rows, computed as they are read.

    `passed` describes how many events of each type pass the conditions on them alone; None where times are imprecise.
    """

    plan: Plan
    batches: Iterator[pa.RecordBatch] = field(repr=False)
    passed: Callable[[], str] | None = field(default=None, repr=False)

    def without_rows(self) -> str:
        """The message where there is no row."""
        having = isinstance(self.plan.output, Aggregation) and self.plan.output.having is not None
        what = "no row: there is no match, or none of a group that HAVING keeps" if having else "no match"
        passed = "" if self.passed is None else f"; events that pass the conditions on them alone: {self.passed()}"
        return f"{what}{passed}\nhint: explain with {option('analyze', True)} says how far matching gets, what stops it"


def answers(text: str, source: object, options: Options, watch: Watch = UNWATCHED) -> list[Answer]:
    """The queries of a text over a stream; nothing has run yet when this returns, but everything is checked."""
    queries = queries_of(text, options.query)
    reading, found = _answers(queries, source, for_queries(options, queries), watch)
    report_warnings(reading, [answer.plan for answer in found], watch.warn)
    return [_warning_of_infinity(answer, watch) for answer in found] if options.numeric == "float" else found


def _answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """Warnings about the events, and the answers."""
    if options.engine == "spark":
        from trendloom.engines.spark.session import require_spark

        require_spark()
        from trendloom.engines.spark.answers import answers as on_spark

        return on_spark(queries, source, options, watch)
    if is_spark_frame(source):
        raise OptionError(
            f"the {options.engine} engine does not read a DataFrame of Spark's",
            hint=f"use {option('engine', 'spark')}, or give df.toArrow()",
        )
    if options.engine == "reference":
        from trendloom.engines.reference.answers import answers as by_definition

        return by_definition(queries, source, options, watch)
    from trendloom.engines.local.answers import answers as in_this_process

    return in_this_process(queries, source, options, watch)


def _warning_of_infinity(answer: Answer, watch: Watch) -> Answer:
    """The same answer, with one warning of aggregates that doubles cannot hold."""

    totals = [value.name for value in answer.plan.output.values] if isinstance(answer.plan.output, Aggregation) else []

    def warned() -> Iterator[pa.RecordBatch]:
        infinite: set[str] = set()
        for batch in answer.batches:
            infinite |= {name for name in totals if _infinite(batch.column(name))}
            yield batch
        if infinite:
            listed = ", ".join(sorted(infinite))
            warning = QueryWarning(f"{listed}: infinite in some rows; {option('numeric', 'log')} holds any size")
            watch.warn(warning, answer.plan.name)

    return replace(answer, batches=warned())


def _infinite(column: pa.Array) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_inf(column)).as_py())


def table_of(found: list[Answer]) -> pa.Table:
    """All rows as one table, with the columns of all queries; a workload's rows carry the name of their query."""
    refuse_clashing_columns([answer.plan for answer in found])
    tables = []
    for answer in found:
        table = pa.Table.from_batches(list(answer.batches))
        if answer.plan.name is not None:
            names = pa.repeat(answer.plan.name, table.num_rows)
            table = table.add_column(0, "query", names)
        tables.append(table)
    return tables[0] if len(tables) == 1 else one_table(tables)
