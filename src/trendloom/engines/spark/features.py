"""The features of a diagnosis by Spark: tasks read the archive and make numbers of it, which come to the driver.

Work is cut by type and by time into pieces of about as many events each. The task of a piece reads its events from the
archive and makes features of them as one process does, so the numbers are the same, bit by bit, and functions of the
user run here, too. Which of them are features is decided when all pieces are there (`diagnosis.archived_features`).

All tasks must see the archive: on this machine, or on storage that all machines share.
Cost: one job, however many types and window sizes there are; every event is read once by one task.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from trendloom.archive import Archive
from trendloom.diagnosis.archived_features import joined_in_time, spans_of_windows, type_features
from trendloom.diagnosis.feature_space import WindowedSpace
from trendloom.diagnosis.features import FeaturePart, FeatureTable
from trendloom.engines.spark.errors import in_our_words
from trendloom.engines.spark.paths import cores
from trendloom.engines.spark.tasks import Batches, listed, mapped
from trendloom.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PIECES_PER_CORE = 3
"""More than one, so that cores that finish early have work left."""
FEW_EVENTS = 20_000
"""As many events take a task about as long as Spark takes to start it."""
MOST_WINDOWS = 4_096
"""Of one piece: what it gives out must fit into a cell of Arrow's."""
MADE = pa.schema([("space", pa.int32()), ("part", pa.binary()), ("damaged", pa.binary())])


@dataclass(frozen=True)
class Piece:
    """A unit of work of a task: the windows of all sizes that start in [low, high), of the events of one type."""

    type: str
    low: int
    high: int
    events: int


def features_on_spark(
    spark: SparkSession, archive: Archive, spaces: Sequence[WindowedSpace]
) -> tuple[FeatureTable, ...]:
    """A table for each window size, as `diagnosis.archived_features.features_of_archive` makes them in one process."""
    shares = shared_out(list(pieces_of(archive, spaces, PIECES_PER_CORE * cores(spark))), cores(spark))
    rows = [[(one.type, one.low, one.high) for one in share] for share in shares]
    body = partial(_made, replace(archive, root=archive.root.resolve()), tuple(spaces))
    with in_our_words():
        made = mapped(listed(spark, rows, "type string, low long, high long"), body, MADE).toArrow()
    parts: list[list[FeaturePart]] = [[] for _ in spaces]
    for row in made.to_pylist():
        parts[row["space"]].append(pickle.loads(row["part"]))
        for path, problem in pickle.loads(row["damaged"]).items():
            archive.leave_out(path, problem)
    return tuple(joined_in_time(found, one.starts, one.window) for one, found in zip(spaces, parts, strict=True))


# ------------------------------------------------------------------------------------------------- pieces


def pieces_of(archive: Archive, spaces: Sequence[WindowedSpace], wanted: int) -> Iterator[Piece]:
    """About `wanted` pieces, more where types are many or stretches of time are long."""
    spans = spans_of_windows(spaces, 0)
    rows = dict.fromkeys(archive.types(), 0)
    for file in archive.files:
        if file.kind == "events" and any(file.overlaps(*span) for span in spans):
            rows[file.of] += file.rows
    enough = max(sum(rows.values()) // wanted, FEW_EVENTS)
    longest, most = max(spaces, key=lambda one: one.window).starts, max(len(one.starts) for one in spaces)
    first, last = min(low for low, _ in spans), max(high for _, high in spans)
    for type_, events in rows.items():
        count = min(max(-(-events // enough), -(-most // MOST_WINDOWS)), len(longest))
        cuts = longest[np.arange(1, count) * len(longest) // count].tolist()
        for low, high in zip([first, *cuts], [*cuts, last], strict=True):
            yield Piece(type_, low, high, events // count)


def shared_out(pieces: Sequence[Piece], tasks: int) -> list[list[Piece]]:
    """Pieces by task, large ones first, each to the task that has the least to do."""
    found: list[list[Piece]] = [[] for _ in range(tasks)]
    load = [0] * tasks
    for piece in sorted(pieces, key=lambda one: -one.events):
        least = load.index(min(load))
        found[least].append(piece)
        load[least] += piece.events + FEW_EVENTS // 10
    return [share for share in found if share]


# --------------------------------------------------------------------------------------------- inside a task


def _made(archive: Archive, spaces: tuple[WindowedSpace, ...], batches: Batches) -> Batches:
    """Task function: the features of pieces, one row for each piece and window size."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        if not archive.root.exists():
            raise RunError(
                f"the archive {archive.root} cannot be seen by the tasks",
                hint="keep it on storage that all machines share",
            )
        known = dict(archive.damaged)
        some = _windows_between(spaces, row["low"], row["high"])
        parts = type_features(archive, row["type"], tuple(some.values()), whole=False)
        damaged = {path: problem for path, problem in archive.damaged.items() if path not in known}
        for number, part in zip(some, parts, strict=True):
            yield pa.RecordBatch.from_pylist(
                [{"space": number, "part": pickle.dumps(part), "damaged": pickle.dumps(damaged)}], MADE
            )


def _windows_between(spaces: Sequence[WindowedSpace], low: int, high: int) -> dict[int, WindowedSpace]:
    """The windows that start in [low, high), by the number of their size; sizes without any are left out."""
    found = {}
    for number, one in enumerate(spaces):
        begin, end = np.searchsorted(one.starts, [low, high])
        if begin < end:
            found[number] = replace(one, starts=one.starts[begin:end])
    return found
