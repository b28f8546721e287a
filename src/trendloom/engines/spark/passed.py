"""How many events pass the conditions on them alone, counted by Spark: one more job, for a query without any row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from trendloom.engines.spark.columns import column
from trendloom.engines.spark.error_transport import in_our_words
from trendloom.engines.spark.frames import Frame
from trendloom.engines.spark.tasks import Batches, Task, mapped
from trendloom.logical.plan import Plan
from trendloom.runtime.analysis.position_counts import in_one_line, matching_alone, passed_events
from trendloom.runtime.blocks import stream_of_table

COUNTS = pa.schema([("position", pa.int64()), ("of_type", pa.int64()), ("together", pa.int64())])


def describe_passed(plan: Plan, frame: Frame) -> str:
    """As `engines.looking.passed.describe_passed`, over the events of a DataFrame."""
    plan = matching_alone(plan)
    with in_our_words():
        rows = frame.df.select(*(column(name) for name in plan.scan.columns))
        counts = mapped(rows, Task(plan, _counted), COUNTS).toArrow()
    sums = counts.group_by("position").aggregate([("of_type", "sum"), ("together", "sum")]).to_pylist()
    found = {one["position"]: (one["together_sum"], one["of_type_sum"]) for one in sums}
    return in_one_line(plan, found)


def _counted(plan: Any, batches: Batches) -> Batches:
    for batch in batches:
        if batch.num_rows:
            stream = stream_of_table(plan, pa.Table.from_batches([batch]))
            found = [one for one in passed_events(plan, stream) if not one.negated]
            counts = [[one.atom.position, one.of_type, one.together] for one in found]
            columns = [list(values) for values in zip(*counts, strict=True)]
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.int64()) for values in columns], schema=COUNTS)
