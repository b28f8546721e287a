"""The page beside a real `trendloom stream --archive`: the chart of a running stream grows, and can be asked why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from playwright.sync_api import expect
from tests.conftest import QUICK_SPARK
from tests.dashboard.conftest import TOKEN, serve
from tests.dashboard.small_archive import HIGH, LOW, QUERY, REFERENCE, STEP, events_of_nodes
from tests.dashboard.test_page_in_browser import choose, drag, with_chart
from tests.spark.processes import environment
from tests.spark.streams import write_batch

from trendloom.archive import open_archive
from trendloom.errors import TrendloomError

PATIENCE = 120
WORDS = ["stream", "q.tql", "--source", "parquet:days", "--checkpoint", "state", "--buckets", "2", "--max-files", "1",
         "--watermark", "0 seconds", "--sink", "parquet:rows", "--archive", "plant",
         "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]  # fmt: skip


def events_between(low: int, high: int) -> pa.Table:
    """The events of some steps."""
    events, begin = events_of_nodes(), REFERENCE[0]
    ticks = events.column("time").cast(pa.int64())
    inside = pc.and_(pc.greater_equal(ticks, begin + low * STEP), pc.less(ticks, begin + high * STEP))
    return events.filter(inside)


def rows_there(root: Path) -> int:
    try:
        return open_archive(root).results("latency").num_rows
    except TrendloomError:  # it is not made yet
        return 0


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Path]:
    """The archive of a stream that runs; it has seen the time before anything was wrong."""
    (tmp_path / "q.tql").write_text(QUERY)
    write_batch(tmp_path / "days", 0, events_between(0, LOW))
    quick = [word for name, value in QUICK_SPARK.items() for word in ("--conf", f"{name}={value}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "trendloom", *WORDS, *quick], cwd=tmp_path, start_new_session=True,
        env={**environment(), "TRENDLOOM_COMPILE": "never"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE
        while not rows_there(tmp_path / "plant"):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        yield tmp_path / "plant"
        assert process.poll() is None, "the stream still runs"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_chart_of_a_running_stream_grows(plant: Path, visit: Any) -> None:
    server, address = serve(plant, TRENDLOOM_TOKEN=TOKEN)
    try:
        page = with_chart(visit(f"{address}?token={TOKEN}"))
        choose(page, "partition", "node = n1")
        choose(page, "value", "seconds")
        expect(page.locator("#chart .ytitle")).to_have_text("seconds")
        points = page.locator("#chart .scatterlayer .points path")
        before = points.count()
        page.get_by_label("Follow a running stream").check()
        write_batch(plant.parent / "days", 1, events_between(LOW, HIGH))
        write_batch(plant.parent / "days", 2, events_between(HIGH, HIGH + 60))
        # windows of 6 steps; the last one waits for the watermark
        expect(points).to_have_count(before + (HIGH + 60 - LOW) // 6, timeout=60_000)
        page.get_by_label("Follow a running stream").uncheck()
        drag(page, 0.65, 0.75)
        expect(page.locator(".mark.abnormal")).to_have_count(1)
        page.get_by_label("Reference", exact=True).check()
        drag(page, 0.1, 0.5)
        expect(page.locator(".mark.reference")).to_have_count(1)
        page.get_by_role("button", name="Why?").click()
        expect(page.locator("#sentence")).to_contain_text("free memory")
    finally:
        server.terminate()
        server.wait()
