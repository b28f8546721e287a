"""Spark's workers use what the driver has compiled, and what their daemon has loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import trendloom as tl
from trendloom.engines.precompile import USUAL, usual_events
from trendloom.engines.spark.session import is_started
from trendloom.engines.spark.tasks import code_to_send
from trendloom.kernels.jit.interpreted import compiled_first

QUERY = USUAL["COUNT(*)"]


def compiled_in_a_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many functions a worker compiles for its part of the events, and how many rows that gives."""
    from trendloom.kernels.jit.compiled import counting_compilations
    from trendloom.kernels.jit.interpreted import compiled_first

    events = pa.Table.from_batches(list(batches))
    with compiled_first(), counting_compilations() as found:
        rows = len(tl.run(QUERY, events))
    yield pa.RecordBatch.from_pylist([{"compiled": sum(found.values()), "rows": rows}])


def test_tasks_compile_nothing_that_the_driver_has_compiled(spark: Any) -> None:
    events = usual_events(400)
    with compiled_first():
        expected = len(tl.run(QUERY, events))
    split = spark.createDataFrame(events.to_pandas()).repartition(2, "key")
    found = split.mapInArrow(compiled_in_a_task, "compiled long, rows long").toArrow().to_pylist()
    assert sum(one["rows"] for one in found) == expected
    assert [one["compiled"] for one in found] == [0] * len(found)


def test_code_is_not_sent_to_tasks_of_this_machine(spark: Any) -> None:
    assert is_started()
    assert code_to_send(spark.range(1)) is None


def loaded_when_a_task_starts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import sys

    found = "trendloom.engines.spark.streaming.stepping" in sys.modules
    yield pa.RecordBatch.from_pylist([{"loaded": found}])


def test_workers_start_with_everything_loaded(spark: Any) -> None:
    found = spark.range(2).repartition(2).mapInArrow(loaded_when_a_task_starts, "loaded boolean").toArrow()
    assert found["loaded"].to_pylist() == [True, True]
