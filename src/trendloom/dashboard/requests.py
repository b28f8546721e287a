"""Work of the page for the engines, as functions that run in a process of their own (see `jobs`).

They take and give plain, picklable values: a folder and a text go in, what is drawn and shown comes out. A run leaves
its rows in the folder of the job as Parquet, from where pages of the table and downloads are read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.archive import Archive
from trendloom.dashboard.app_state import opened_quietly
from trendloom.dashboard.jobs import Allowance, Report
from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.diagnosis.monitors import Grade
from trendloom.diagnosis.request import DiagnosisRequest
from trendloom.engines.answers import Watch, answers, table_of
from trendloom.engines.diagnose import DiagnosisWatch, diagnose_archive, save_diagnosis
from trendloom.engines.introspection import explain_queries
from trendloom.errors import OptionError, QueryError, QueryWarning
from trendloom.frontend.tree import Query
from trendloom.logical.bind import bind
from trendloom.logical.bind.workload import columns_of
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind, Schema
from trendloom.options import Options
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import queries_of, schema_of_columns
from trendloom.viz.canvas import Drawing
from trendloom.viz.query import caption_of, drawing_of, picture_of
from trendloom.viz.timeline import Timeline, timeline_of_rows

ROWS = "rows.parquet"
LONGEST_QUERY = 20_000
"""Characters: a query that people write has some hundreds."""


@dataclass(frozen=True)
class QueryProblem:
    """An error of a query, and its place in the text: 1-based line and column; line None: nowhere in particular."""

    message: str
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    length: int = 1


@dataclass(frozen=True)
class QueryLook:
    """The result of checking a query: its error, or its meaning and how it would run."""

    problem: QueryProblem | None = None
    warnings: tuple[str, ...] = ()
    drawing: Drawing | None = None
    caption: str = ""
    plan: str = ""


@dataclass(frozen=True, eq=False)
class RunResult:
    """The result of a run; the rows are in the folder of the job. `cut`: there may be more than the page keeps."""

    rows: int
    columns: tuple[str, ...]
    events: int
    seconds: float
    cut: bool
    timeline: Timeline | None
    notes: tuple[str, ...]


# ------------------------------------------------------------------------------------------------- looking


def look_at_query(report: Report, folder: Path, root: Path, text: str) -> QueryLook:
    """A query over the columns of an archive, not run."""
    archive = opened_quietly(root)
    try:
        (query,) = _one_query(text)
        plan = bind(query, schema_of_archive(archive))
        explained = explain_queries(text, schema_of_archive(archive), _options(archive))
        drawing = drawing_of(*picture_of(plan))
    except QueryError as error:
        return QueryLook(problem_of(error))
    except OptionError as error:
        return QueryLook(QueryProblem(error.message, error.hint))
    return QueryLook(None, tuple(str(one) for one in plan.warnings), drawing, caption_of(plan), explained.text)


def problem_of(error: QueryError) -> QueryProblem:
    """An error of the language as the editor marks it."""
    span = error.span
    if span is None:
        return QueryProblem(error.message, error.hint)
    return QueryProblem(error.message, error.hint, span.line, span.column, max(1, span.length))


def _one_query(text: str) -> tuple[Query]:
    if len(text) > LONGEST_QUERY:
        raise OptionError(f"the text has {len(text):,} characters", hint=f"at most {LONGEST_QUERY:,} are read here")
    found = queries_of(text)
    if len(found) != 1:
        names = ", ".join(str(query.name) for query in found)
        raise OptionError(f"the workbench runs one query, this text has {len(found)}: {names}", hint="keep one of them")
    return (found[0],)


def _options(archive: Archive, **given: Any) -> Options:
    return Options(time=archive.time, type=archive.type, time_unit=archive.unit, **given)


def schema_of_archive(archive: Archive) -> Schema:
    """The columns of all types of an archive; a type that it does not hold is worth a warning."""
    types = archive.types()
    columns: dict[str, pa.DataType] = {archive.time: archive.settings.time_type, archive.type: pa.string()}
    for summary in types.values():
        columns |= summary.columns
    schema = schema_of_columns(pa.schema(list(columns.items())), _options(archive))
    return replace(schema, present=frozenset(types))


# ------------------------------------------------------------------------------------------------- running


def run_query(
    report: Report, folder: Path, root: Path, text: str, stretch: tuple[int | None, int | None], allowance: Allowance
) -> RunResult:
    """Run a query over an archive, or a stretch [from, to) of it in ticks; at most the allowed rows are kept."""
    archive = opened_quietly(root)
    (query,) = _one_query(text)
    plan = bind(query, schema_of_archive(archive))
    report("reading events")
    began = time.perf_counter()
    events = events_for(archive, plan, stretch)
    report(f"looking for matches in {len(events):,} events")
    notes: list[str] = []
    options = _options(archive, limit=allowance.rows + 1, memory_limit=allowance.bytes)
    found = answers(text, events, options, _watch(report, notes))
    rows = table_of(found)
    if not len(rows):
        notes.append(found[0].without_rows().partition("\n")[0])
    cut = len(rows) > allowance.rows
    rows = rows.slice(0, allowance.rows)
    pq.write_table(rows, folder / ROWS)
    times = [column.name for column in columns_of(plan) if column.kind is Kind.TIME]
    times = [name for name in ("window_start", "window_end", *times) if name in rows.column_names]
    shown = timeline_of_rows(rows, events, times, time=archive.time) if len(rows) else None
    seconds = time.perf_counter() - began
    return RunResult(len(rows), tuple(rows.column_names), len(events), seconds, cut, shown, tuple(notes))


def events_for(archive: Archive, plan: Plan, stretch: tuple[int | None, int | None]) -> pa.Table:
    """The events that a query can need, by its optimized plan."""
    scan = plan_query(plan).plan.scan
    types = [name for name in archive.types() if scan.types is None or name in scan.types]
    table = archive.stream(*stretch, types=types, columns=list(scan.columns))
    missing = [name for name in scan.columns if name not in table.column_names]
    for name in missing:  # no type that is read has this column, but the query may name it
        table = table.append_column(name, pa.nulls(len(table)))
    return table


def _watch(report: Report, notes: list[str]) -> Watch:
    def warn(warning: QueryWarning, query: str | None) -> None:
        notes.append(warning.message)  # hints name options, which a page has not

    def compiling(name: str | None) -> None:
        report("looking for matches" if name is None else f"compiling {name}, once")

    return Watch(
        progress=lambda found: report(f"{found:,} matches so far"),
        unsorted=lambda: notes.append("rows are in the order in which they were found"),
        warn=warn,
        compiling=compiling,
        beforehand=notes.append,
    )


# ------------------------------------------------------------------------------------------------ diagnosing


@dataclass(frozen=True, eq=False)
class Reason:
    """A diagnosis with the archive and the request that it answers."""

    root: Path
    request: DiagnosisRequest
    diagnosis: Diagnosis


def find_reason(report: Report, folder: Path, root: Path, request: DiagnosisRequest) -> Reason:
    """The diagnosis of marked intervals."""
    watch = DiagnosisWatch(progress=lambda what, share: report(f"{what} ({share:.0%})"))
    return Reason(root, request, diagnose_archive(opened_quietly(root), request, watch=watch))


def keep_reason(report: Report, folder: Path, reason: Reason, name: str) -> Grade:
    """Keep a reason as a monitor; returns how well it separates the marked windows."""
    archive = opened_quietly(reason.root)
    report("precision and recall of the monitor")
    return save_diagnosis(archive, reason.diagnosis, name, query=reason.request.query).grade
