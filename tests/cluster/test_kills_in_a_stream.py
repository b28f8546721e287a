"""Processes of a live stream are killed, and its rows are the same: none is lost, none comes twice.

On a real cluster. `tests/soak` does the same for longer, at random moments.
"""

from __future__ import annotations

from pathlib import Path

from tests.conftest import QUICK_CLUSTER
from tests.spark.streaming_cluster import Cluster, Driver, kill, processor_time, wait_until
from tests.spark.streams import (
    WORKLOAD,
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


def kill_a_busy_python_worker(cluster: Cluster, driver: Driver) -> None:
    """Until a task has lost the process that it works with: an idle one is missed by nobody."""
    before: dict[int, int] = {}

    def a_task_lost_its_process() -> bool:
        driver.check()
        now = {pid: processor_time(pid) for pid in cluster.python_workers()}
        for pid in [pid for pid, spent in now.items() if spent > before.get(pid, spent)][:1]:
            kill(pid)
        before.clear()
        before.update(now)
        return "Lost task" in driver.log()

    wait_until(a_task_lost_its_process, "a task that lost its Python worker")


def test_rows_come_once_whatever_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    batches = batches_of_events(5)
    settings = {"spark.sql.shuffle.partitions": "2", **QUICK_CLUSTER}
    with Driver(tmp_path / "stream", cluster.url, WORKLOAD, settings=settings, buckets=2) as driver:
        for number, events in enumerate(batches):
            write_batch(driver.path("source"), number, events)
        driver.start(hold=3)
        driver.wait_for_batch(1)
        kill_a_busy_python_worker(cluster, driver)
        driver.wait_for_batch(driver.committed() + 2)
        cluster.kill_worker(0)
        cluster.start_worker(0)
        wait_until(lambda: "Lost executor" in driver.log(), "an executor that the driver misses")
        wait_until(driver.path("holding").exists, "batch 3 written")
        assert driver.committed() == 2  # so batch 3, which is written already, will be done again
        driver.kill()
        driver.start()
        driver.stop()
    timely, late = split_by_lateness(batches)
    want = expected_rows(WORKLOAD, timely)
    assert min(rows.total() for rows in want.values()) > 20
    assert difference(rows_given_out(driver.path("sink"), names_of(WORKLOAD)), want) == {}
    assert late.num_rows == 6
    assert late_events(driver.path("late"), "m") == counted(late)
