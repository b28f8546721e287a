"""What is to be archived, and what came of it: the same for both engines.

Events come in by one commit, and the rows of every query by one of their own: the same events may be archived again
with other queries. What is archived again under the same name replaces itself; what was put together with others since
is in the archive for good, and is left as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from trendloom.archive.archive import create_archive
from trendloom.archive.commits import PARTITIONS, ArchivedFile
from trendloom.archive.locks import sole_writer
from trendloom.archive.queries import save_query
from trendloom.archive.result_series import ArchivedSeries, check_dimensions, series_of
from trendloom.archive.upkeep import keep_to_retention
from trendloom.archive.writing import ArchiveWriter, commit_files, writer_of
from trendloom.model.schema import Schema
from trendloom.options import Options
from trendloom.planner.workload import PhysicalWorkload


@dataclass(frozen=True)
class ArchiveRequest:
    """What is to be archived where: the text of queries ("" for none), and how the archive is to be.

    `commit`: the name under which it comes in; `name`: that of a query that has none. `chunk` and `keep`: durations;
    `keep` None: for ever. `dimensions`: columns beside texts that may distinguish partitions.
    """

    root: Path
    text: str
    commit: str
    name: str | None = None
    chunk: str | int = "1 hour"
    keep: str | int | None = None
    dimensions: tuple[str, ...] = ()

    def opened(
        self, schema: Schema, arrow: pa.Schema, workload: PhysicalWorkload | None, options: Options
    ) -> tuple[ArchivedSeries, ...]:
        """The archive made ready for these events, and how the rows of queries go into it."""
        check_dimensions(self.dimensions, arrow)
        queries = () if workload is None else workload.queries
        series = tuple(series_of(one, arrow, options.numeric, self.name, self.dimensions) for one in queries)
        create_archive(
            self.root, time=schema.times, type=schema.type, axis=schema.axis, chunk=self.chunk, retention=self.keep
        )
        for one in series:
            save_query(self.root, one.query)
        return series


@dataclass
class Archived:
    """How many events and rows by query came in; `there`: what was in the archive before, and was left as it is."""

    events: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    there: list[str] = field(default_factory=list)


@dataclass
class Archiving:
    """The commits of one request: of events, and of the rows of every query. See `alone` before any is written."""

    request: ArchiveRequest
    archived: Archived = field(default_factory=Archived)

    def alone(self, series: Sequence[ArchivedSeries]) -> AbstractContextManager[None]:
        """Hold the commits of events and of these queries; refuse where another process is writing one of them."""
        writers = [self.event_writer(), *(self.row_writer(one) for one in series)]
        return sole_writer(self.request.root.resolve(), [one.commit for one in writers])

    def event_writer(self) -> ArchiveWriter:
        return writer_of(self.request.root.resolve(), f"{self.request.commit}-events")

    def row_writer(self, series: ArchivedSeries) -> ArchiveWriter:
        return writer_of(self.request.root.resolve(), f"{self.request.commit}-query-{series.query.name}")

    def commit_events(self, files: Sequence[ArchivedFile]) -> None:
        self.archived.events = self._committed(self.event_writer(), files, "events")

    def commit_rows(self, series: ArchivedSeries, files: Sequence[ArchivedFile]) -> None:
        """Commit rows of a query, and what was seen of its partitions."""
        name = series.query.name
        self.archived.rows[name] = self._committed(self.row_writer(series), files, f"rows of query {name}")

    def end(self) -> Archived:
        """Drop what has become old."""
        keep_to_retention(self.request.root)
        return self.archived

    def _committed(self, writer: ArchiveWriter, files: Sequence[ArchivedFile], what: str) -> int:
        if not commit_files(writer.root, writer.commit, files):
            self.archived.there.append(what)
            return 0
        return sum(file.rows for file in files if file.kind != PARTITIONS)


def commit_name(places: Sequence[str]) -> str:
    """A name for events of files: the same files have the same."""
    resolved = sorted(place if "://" in place else str(Path(place).resolve()) for place in places)
    return f"files-{hashlib.sha256(chr(0).join(resolved).encode()).hexdigest()[:12]}"
