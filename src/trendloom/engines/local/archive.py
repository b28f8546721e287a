"""Archive events and the rows of queries over them in this process: events are read once, and no Java is needed."""

from __future__ import annotations

import pyarrow as pa

from trendloom.archive.requests import Archived, ArchiveRequest, Archiving
from trendloom.engines.answers import UNWATCHED, Watch, answers
from trendloom.io.read import InMemory
from trendloom.options import Options
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import for_queries, load, queries_of
from trendloom.runtime.warnings import report_warnings


def archive_locally(request: ArchiveRequest, source: object, options: Options, watch: Watch = UNWATCHED) -> Archived:
    """Put the events of a source, and the rows of queries over them, into an archive."""
    queries = queries_of(request.text, options.query) if request.text else ()
    options = for_queries(options, queries)
    events = load(source, options)
    workload = planned(queries, events.schema, options.limits) if queries else None
    series = request.opened(events.schema, events.table.schema, workload, options)
    archiving = Archiving(request)
    if not queries:
        report_warnings(events.warnings, (), watch.warn)
    with archiving.alone(series):
        found = answers(request.text, InMemory(events.table), options, watch) if queries else []
        archiving.commit_events(archiving.event_writer().events(events.table))
        for one, answer in zip(series, found, strict=True):
            rows, writer = one.placed(pa.Table.from_batches(list(answer.batches))), archiving.row_writer(one)
            parts = [one.dimensions(events.table)] if one.candidates else []
            dimensions = writer.partitions(one.query, parts)
            archiving.commit_rows(one, [*writer.results(one.query, rows), *dimensions])
        return archiving.end()
