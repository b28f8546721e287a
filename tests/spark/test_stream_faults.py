"""Trouble with checkpoint, disk and sink, and workloads that change between restarts: a clear error, nothing lost.

All tests go on from one half-way point: a stream that has taken three files and was stopped. Each gets a copy of its
checkpoint and sink, does something to it, and in the end has all rows once.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sinks import write_once
from tests.spark.streams import (
    COLUMNS,
    DELAY,
    GROUPS,
    MATCHES,
    TOTALS,
    WATERMARK,
    WORKLOAD,
    Rows,
    batches_of_events,
    counted,
    difference,
    expected_rows,
    late_events,
    names_of,
    rows_given_out,
    split_by_lateness,
    write_batch,
)

from trendloom.errors import OptionError
from trendloom.spark import detect

BATCHES = batches_of_events(4)
HALF = 3
"""So many of them were there when the stream was stopped."""
BUCKETS = 2

Sink = Callable[[Any, int], None]


@dataclass(frozen=True)
class Stream:
    """A stream in a folder of its own; the source is everybody's."""

    spark: Any
    source: Path
    folder: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def go_on(
        self, workload: str = WORKLOAD, *, checked: bool = True, buckets: int = BUCKETS, sink: Sink | None = None
    ) -> None:
        """Work off all files that are there. `checked`: tell `detect` of the checkpoint."""
        df = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(self.source))
        told, late = (str(self.checkpoint) if checked else None), str(self.folder / "late")
        rows = detect(df, workload, watermark=WATERMARK, buckets=buckets, late_to=late, checkpoint=told)
        writer = rows.writeStream.option("checkpointLocation", str(self.checkpoint))
        query = writer.foreachBatch(sink or self.write).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def write(self, df: Any, batch: int) -> None:
        write_once(df, batch, self.folder / "sink")

    def refused(self, **how: Any) -> str:
        """The error that the stream ends with."""
        from pyspark.errors import StreamingQueryException

        with pytest.raises(StreamingQueryException) as caught:
            self.go_on(**how)
        return str(caught.value)

    def given_out(self) -> Rows:
        return rows_given_out(self.folder / "sink", names_of(WORKLOAD))

    def has_all_rows_once(self) -> bool:
        timely, late = split_by_lateness(BATCHES)
        assert difference(self.given_out(), expected_rows(WORKLOAD, timely)) == {}
        assert late_events(self.folder / "late", "m") == counted(late)
        return True


@pytest.fixture(scope="module")
def half_way(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A stream that has taken the first files and was stopped; the other files are there by now."""
    folder = tmp_path_factory.mktemp("stream")
    stream = Stream(spark, folder / "source", folder / "half")
    for number, events in enumerate(BATCHES[:HALF]):
        write_batch(stream.source, number, events)
    stream.go_on()
    for number, events in enumerate(BATCHES[HALF:], HALF):
        write_batch(stream.source, number, events)
    return stream


@pytest.fixture
def stream(half_way: Stream, tmp_path: Path) -> Stream:
    shutil.copytree(half_way.folder, tmp_path / "stream")
    return Stream(half_way.spark, half_way.source, tmp_path / "stream")


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: int(path.name.split(".")[0].split("_")[0]))


@contextmanager
def damaged(*paths: Path) -> Iterator[None]:
    """Files whose contents are something else for a while."""
    before = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.write_bytes(b"not what was written" * 3)
    yield
    for path, content in before.items():
        path.write_bytes(content)


# --------------------------------------------------------------------------------------- checkpoint, disk, sink


def test_damaged_offsets_are_named_and_damaged_state_is_told(stream: Stream) -> None:
    file = newest(stream.checkpoint / "offsets", "[0-9]*")
    with damaged(file):
        assert str(file) in stream.refused()
    folders = [path.parent for path in stream.checkpoint.glob("state/0/*/[0-9]*.changelog")]
    files = [newest(folder, "[0-9]*.changelog") for folder in set(folders)]
    with damaged(*files):
        assert "CANNOT_LOAD_STATE_STORE" in stream.refused()
    stream.go_on()
    assert stream.has_all_rows_once()


def test_without_its_checkpoint_a_stream_starts_afresh(stream: Stream) -> None:
    """Files are cut into the same batches again, so a sink that knows batches by their numbers has no row twice."""
    shutil.rmtree(stream.checkpoint)
    stream.go_on()
    assert stream.has_all_rows_once()


@contextmanager
def full_disk(spark: Any) -> Iterator[None]:
    """Spark's process can write nothing to any file: what is left of a full disk without being root."""
    process = spark.sparkContext._gateway.proc.pid
    soft, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_before_a_batch_and_one_that_fills_up_in_it(stream: Stream) -> None:
    with full_disk(stream.spark):
        assert "File too large" in stream.refused()

    def sink(df: Any, batch: int) -> None:
        with full_disk(stream.spark):
            stream.write(df, batch)

    assert "File too large" in stream.refused(sink=sink)
    stream.go_on()
    assert stream.has_all_rows_once()


def test_a_sink_that_fails_twice(stream: Stream) -> None:
    failures = iter(["the table is locked", "the table is gone"])

    def sink(df: Any, batch: int) -> None:
        for reason in failures:
            raise OSError(reason)
        stream.write(df, batch)

    assert "the table is locked" in stream.refused(sink=sink)
    assert "the table is gone" in stream.refused(sink=sink)
    stream.go_on(sink=sink)
    assert stream.has_all_rows_once()


# ------------------------------------------------------------------------------------------- changed workloads


def fingerprints(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


CHANGED = MATCHES + GROUPS.replace("SEQ(A+, B)", "SEQ(A+, C)") + TOTALS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"workload": CHANGED}, "query 'g' has changed"), ({"buckets": 3}, "made with 2 buckets, not 3")],
    ids=["pattern", "buckets"],
)
def test_what_does_not_fit_is_refused_before_anything_is_touched(
    stream: Stream, changes: dict[str, Any], reason: str
) -> None:
    before = fingerprints(stream.folder)
    with pytest.raises(OptionError, match=reason) as caught:
        stream.go_on(**changes)
    assert caught.value.hint is not None
    assert fingerprints(stream.folder) == before


def test_what_does_not_fit_is_refused_by_the_first_batch_at_the_latest(stream: Stream) -> None:
    """Without the name of the checkpoint nobody knows beforehand how its states lie."""
    assert "name it again: checkpoint=" in stream.refused(checked=False)
    assert "name it again: checkpoint=" in stream.refused(checked=False, workload=CHANGED, buckets=3)
    stream.go_on()
    assert stream.has_all_rows_once()


def test_queries_come_go_and_change_while_others_go_on(stream: Stream) -> None:
    """m stays, g keeps fewer rows and returns other columns, t goes, n comes, and gives out what is whole."""
    groups = GROUPS.replace("COUNT(*), SUM(A.x)", "COUNT(*) * 2 AS twice, SUM(A.x) AS total")
    groups = groups.replace("GROUP BY k", "GROUP BY k HAVING COUNT(*) > 2")
    added = "QUERY n: RETURN COUNT(*) PATTERN SEQ(B, C) WHERE [k] WITHIN 20 SLIDE 2\n"
    with pytest.warns(UserWarning, match="query 'n' is new: its answers are whole from "):
        stream.go_on(MATCHES + groups + added)

    timely, _ = split_by_lateness(BATCHES)
    first, _ = split_by_lateness(BATCHES[:HALF])
    seen = max(first["time"].to_pylist())
    passed = seen - DELAY
    old, new = expected_rows(WORKLOAD, timely), expected_rows(groups, timely)
    every_new = expected_rows(added, timely)["n"]
    want = {
        "m": old["m"],
        "g": windows(old["g"], passed, before=True) + windows(new["g"], passed, before=False),
        "t": windows(old["t"], passed, before=True),
        "n": Counter({row: n for row, n in every_new.items() if json.loads(row)["window_start"] > seen}),
    }
    assert min(rows.total() for rows in want.values()) > 5
    assert difference(stream.given_out(), want) == {}


def windows(rows: Counter[str], passed: int, *, before: bool) -> Counter[str]:
    """The rows of windows that had ended before the restart, or of the others."""
    return Counter({row: count for row, count in rows.items() if (json.loads(row)["window_end"] <= passed) == before})
