"""A live stream into an archive: every event of the source and every row once, whatever fails in between.

Late events and types that no query wants are events too. Processes are killed, commits fail before and after they are
made, and the archive holds the same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import QUICK_SPARK
from tests.spark.processes import environment
from tests.spark.streams import GROUPS, WORKLOAD, batches_of_events, counted, names_of, split_by_lateness, write_batch
from typer.testing import CliRunner

import trendloom as tl
from trendloom.archive import Archive, open_archive
from trendloom.cli.main import app
from trendloom.engines.spark import archive as live

WORDS = ["stream", "q.tql", "--source", "parquet:days", "--checkpoint", "state", "--buckets", "2", "--max-files", "1",
         "--sink", "parquet:rows", "--archive", "plant", "--archive-chunk", "50s"]  # fmt: skip
PATIENCE = 120


@pytest.fixture
def batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """Events in files, a micro-batch each; keys have a dimension."""
    monkeypatch.chdir(tmp_path)
    racks = [f"r{number // 2}" for number in range(6)]
    return [
        events.append_column("rack", pa.array([racks[key] for key in events["k"].to_pylist()]))
        for events in batches_of_events(3)
    ]


def stream() -> None:
    """All that is there, on the session of the tests."""
    result = CliRunner().invoke(app, [*WORDS, "--trigger", "available-now"])
    assert result.exit_code == 0, result.stderr


def check(archive: Archive, batches: list[pa.Table], workload: str) -> None:
    """Every event, and the rows that the sink got, once; with their partitions."""
    events = pa.concat_tables(batches)
    assert counted(archive.stream()) == counted(events)
    timely, late = split_by_lateness(batches)
    assert late.num_rows > 0
    given = pq.read_table("rows")
    for name in names_of(workload):
        found = archive.results(name)
        expected = tl.run(workload, timely, query=name, engine="local")
        assert counted(found, without=["at"]) == counted(expected, without=["query"])
        assert found.num_rows == Counter(given["query"].to_pylist())[name]
    keys = archive.partitions("g").select(["k", "rack"]).to_pylist()
    assert keys == [{"k": key, "rack": f"r{key // 2}"} for key in range(6)]
    listed = {file.path for file in archive.files}
    assert {str(path.relative_to(archive.root)) for path in archive.root.rglob("*.parquet")} == listed
    assert not list((archive.root / live.NOTES).iterdir())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_process_is_killed_and_another_goes_on(spark: Any, batches: list[pa.Table]) -> None:
    Path("q.tql").write_text(GROUPS)
    for number, events in enumerate(batches[:2]):
        write_batch(Path("days"), number, events)
    own = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
    own += [word for name, value in QUICK_SPARK.items() for word in ("--conf", f"{name}={value}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "trendloom", *WORDS, *own], env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE
        while not list(Path("plant/commits").glob("*.json")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the batch is in the archive, and most likely not in the checkpoint
        process.wait()
    for number, events in enumerate(batches[2:], 2):
        write_batch(Path("days"), number, events)
    stream()
    check(open_archive("plant"), batches, GROUPS)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_commits_fail_before_and_after_they_are_made(
    spark: Any, batches: list[pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("q.tql").write_text(WORKLOAD)
    for number, events in enumerate(batches):
        write_batch(Path("days"), number, events)
    commit, calls = live.commit_files, []

    def failing(*given: Any, **more: Any) -> bool:
        calls.append(given[1])
        if len(calls) == 2:
            raise OSError("the disk is away")
        done = commit(*given, **more)
        if len(calls) == 4:
            raise OSError("the disk is away again")
        return done

    monkeypatch.setattr(live, "commit_files", failing)
    monkeypatch.setattr(live, "COMPACT_EVERY", 2)
    stream()
    assert [calls.count(name) for name in sorted(set(calls))][1:3] == [2, 2]
    check(open_archive("plant"), batches, WORKLOAD)
