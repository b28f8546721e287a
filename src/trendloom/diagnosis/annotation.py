"""Look up a request in the archive: its query, partition, stretches of time and related partitions.

Errors about names that do not exist list those that do. Nothing is read but commits and the table of partitions, so
mistakes are reported at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trendloom.archive import Archive, ArchivedQuery
from trendloom.archive.catalog import ticks_of_duration
from trendloom.diagnosis.partitions import PartitionRow, PartitionTable
from trendloom.diagnosis.request import DiagnosisRequest, MarkedInterval, shown_tick, tick_of
from trendloom.errors import DataError, OptionError, did_you_mean, option
from trendloom.logical.display import show_duration
from trendloom.model.time import TimeAxis


@dataclass(frozen=True)
class AnnotatedStretch:
    """A stretch of time [low, high) of a partition, in ticks."""

    partition: PartitionRow
    low: int
    high: int


@dataclass(frozen=True)
class Annotation:
    """The marked stretches, looked up in the archive.

    `runs`: partitions come and go, so that what holds of one of them alone says nothing about the next.
    """

    query: ArchivedQuery
    axis: TimeAxis
    zone: str | None
    windows: tuple[int, ...]
    partition: PartitionRow
    abnormal: tuple[AnnotatedStretch, ...]
    reference: tuple[AnnotatedStretch, ...]
    related: tuple[PartitionRow, ...]
    related_by: tuple[str, ...]
    runs: bool
    notes: tuple[str, ...] = ()

    def moment(self, tick: int) -> str:
        """A time as the caller reads it."""
        return shown_tick(tick, self.axis, self.zone)


def annotate(archive: Archive, request: DiagnosisRequest) -> Annotation:
    """Look up a request in the archive; refuse names that do not exist and intervals that cannot be."""
    query = find_query(archive, request.query)
    table = PartitionTable(query.name, tuple(query.keys), archive.partitions(query.name), archive.axis)
    partition = table.find(request.partition, "partition")
    related_by = table.dimensions_named(request.related_by)
    windows = tuple(dict.fromkeys(ticks_of_duration(one, archive.axis, "windows") for one in request.windows))
    marking = _Marking(archive, request, table, windows)
    abnormal = marking.stretches(request.abnormal, partition, "abnormal")
    marking.refuse_overlaps(abnormal, abnormal)
    reference = marking.stretches(request.reference, partition, "reference") or marking.rest(partition, abnormal)
    marking.refuse_overlaps(reference, reference)
    marking.refuse_overlaps(abnormal, reference)
    related = table.related(partition, related_by, [one.partition for one in reference])
    marked = (*abnormal, *reference)
    runs = table.come_and_go(partition, min(one.low for one in marked), max(one.high for one in marked))
    return Annotation(
        query, archive.axis, request.time_zone, windows, partition, abnormal, reference, related, related_by, runs,
        tuple(marking.notes),
    )  # fmt: skip


def find_query(archive: Archive, name: str | None) -> ArchivedQuery:
    """The query of that name; the only one if none is named."""
    known = archive.queries()
    if not known:
        raise DataError(
            f"the archive {archive.root} holds no results of a query",
            hint="archive the rows of a query together with its events",
        )
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name is None:
        raise OptionError("which query was looked at?", hint=f"{option('query')} is one of {', '.join(sorted(known))}")
    if name not in known:
        raise OptionError(f"the archive {archive.root} has no query '{name}'", hint=did_you_mean(name, known))
    return known[name]


@dataclass
class _Marking:
    """Converts marked intervals to stretches, refuses those that cannot be, and notes changes."""

    archive: Archive
    request: DiagnosisRequest
    table: PartitionTable
    windows: tuple[int, ...]
    notes: list[str] = field(default_factory=list)

    def stretches(
        self, marked: Sequence[MarkedInterval], partition: PartitionRow, name: str
    ) -> tuple[AnnotatedStretch, ...]:
        """The intervals in ticks; `name` is the option that they were given with."""
        return tuple(self._stretch(one, partition, name) for one in marked)

    def _stretch(self, one: MarkedInterval, partition: PartitionRow, name: str) -> AnnotatedStretch:
        if one.partition is not None:
            partition = self.table.find(one.partition, name)
        axis, zone = self.archive.axis, self.request.time_zone
        low, high = tick_of(one.begin, axis, zone, name), tick_of(one.end, axis, zone, name)
        found = AnnotatedStretch(partition, low, high)
        if low >= high:
            way = "swap the two times" if low > high else "an interval begins before it ends"
            raise OptionError(f"the {name} interval {self.shown(found)} is empty", hint=way)
        return self._whole_window(self._inside(found, name), name)

    def _inside(self, one: AnnotatedStretch, name: str) -> AnnotatedStretch:
        """The stretch as far as the archive has events; all outside is refused."""
        first, last = self.archive.span
        if one.high <= first or one.low > last:
            raise OptionError(
                f"the {name} interval {self.shown(one)} lies outside the archive",
                hint=f"it has events from {self.moment(first)} to {self.moment(last)}",
            )
        inside = replace(one, low=max(one.low, first), high=min(one.high, last + 1))
        if inside != one:
            self.notes.append(
                f"the {name} interval {self.shown(one)} was cut to {self.shown(inside)}: there are no other events"
            )
        return inside

    def _whole_window(self, one: AnnotatedStretch, name: str) -> AnnotatedStretch:
        for window in self.windows:
            if -(-one.low // window) >= one.high // window:
                length = show_duration(window, self.archive.axis)
                raise OptionError(
                    f"the {name} interval {self.shown(one)} holds no whole window of {length}",
                    hint=f"windows begin at multiples of {length}: mark a longer interval, or give a shorter "
                    + option("windows"),
                )
        return one

    def rest(self, partition: PartitionRow, abnormal: Sequence[AnnotatedStretch]) -> tuple[AnnotatedStretch, ...]:
        """The rest of the partition's span, as far as it holds whole windows."""
        free, begin = [], partition.first
        for one in sorted((one for one in abnormal if one.partition.key == partition.key), key=lambda one: one.low):
            free.append(AnnotatedStretch(partition, begin, one.low))
            begin = max(begin, one.high)
        free.append(AnnotatedStretch(partition, begin, partition.last + 1))
        whole = [one for one in free if all(-(-one.low // window) < one.high // window for window in self.windows)]
        if not whole:
            span = self.shown(AnnotatedStretch(partition, partition.first, partition.last))
            raise OptionError(
                f"what is left of the partition {partition} ({span}) holds no whole window to compare with",
                hint=f"mark what is normal, here or in another partition: {option('reference')}",
            )
        return tuple(whole)

    def refuse_overlaps(self, some: Sequence[AnnotatedStretch], others: Sequence[AnnotatedStretch]) -> None:
        """Refuse stretches that share time; two of the reference may, in different partitions."""
        same = some is others
        for number, one in enumerate(some):
            for other in others[number + 1 :] if same else others:
                apart = same and one.partition.key != other.partition.key
                if one.low < other.high and other.low < one.high and not apart:
                    raise OptionError(
                        f"the intervals {self.shown(one)} and {self.shown(other)} overlap",
                        hint="a window is either abnormal or normal, because features use the events of all "
                        "partitions: mark intervals that share no time",
                    )

    def shown(self, one: AnnotatedStretch) -> str:
        return f"{self.moment(one.low)} to {self.moment(one.high)}"

    def moment(self, tick: int) -> str:
        return shown_tick(tick, self.archive.axis, self.request.time_zone)
