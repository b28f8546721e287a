"""Reports of Spark's, added up: each batch once, whoever brings them; and the text that Prometheus reads."""

from __future__ import annotations

import re
from typing import Any

from trendloom.engines.spark.streaming.metrics import Metrics, MetricsTotal, metrics_of, prometheus_text

SAMPLE = re.compile(r"[a-z_]+ -?\d+(\.\d+)?(e[+-]?\d+)?")


def report(batch: int, events: int = 10, **counted: int) -> dict[str, Any]:
    return {
        "id": "stream",
        "batchId": batch,
        "sources": [{"numInputRows": events}],
        "durationMs": {"addBatch": 1, "triggerExecution": 2000},
        "eventTime": {"watermark": "2024-01-01T00:00:10.000Z"},
        "stateOperators": [
            {"numRowsTotal": 3, "memoryUsedBytes": 50, "customMetrics": {"rocksdbSstFileSize": 700}},
            {"numRowsTotal": 4, "memoryUsedBytes": 50, "customMetrics": {}},
        ],
        "observedMetrics": {
            "trendloom_events": {"kept": events, "late": 0, "untimed": 0, **counted},
            "trendloom_results": {"rows": 2},
        },
    }


def test_totals_and_the_last_batch() -> None:
    total = MetricsTotal()
    total.add([report(4, late=1), report(5, events=30, late=2, untimed=1)])
    assert total.metrics == Metrics(
        batch=5, batches=2, events=40, late=3, untimed=1, results=4, batch_events=30, batch_results=2,
        batch_seconds=2.0, events_per_second=15.0, watermark=1704067210.0, state_rows=7, state_bytes=750,
    )  # fmt: skip


def test_reports_of_spark_connect_have_another_shape() -> None:
    def apart(counted: dict[str, int]) -> dict[str, Any]:
        return {"values": list(counted.values()), "schema": {"fields": [{"name": name} for name in counted]}}

    told = report(0, late=3)
    total = MetricsTotal()
    total.add([{**told, "observedMetrics": {name: apart(one) for name, one in told["observedMetrics"].items()}}])
    assert (total.metrics.late, total.metrics.results) == (3, 2)


def test_a_batch_counts_once() -> None:
    total = MetricsTotal()
    assert len(total.add([report(0), report(1)])) == 2
    assert [found.batch for found in total.add([report(0), report(1), report(2)])] == [2]
    assert total.metrics.events == 30


def test_a_look_that_found_nothing_is_no_batch() -> None:
    total = MetricsTotal()
    idle = {**report(3, events=0), "durationMs": {"triggerExecution": 1}, "observedMetrics": {}, "stateOperators": []}
    assert total.add([idle]) == []
    assert [found.batch for found in total.add([report(3)])] == [3]


def test_spark_has_no_watermark_at_first() -> None:
    total = MetricsTotal()
    first = {**report(0), "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    total.add([first])
    assert total.metrics.watermark is None
    assert total.metrics.lag(5.0) is None


class Query:
    """A query of Spark's as far as metrics look at it."""

    def __init__(self, name: str, reports: list[dict[str, Any]]) -> None:
        self.id = name
        self.recentProgress = [Progress(one) for one in reports]

    @property
    def lastProgress(self) -> Progress | None:
        return self.recentProgress[-1] if self.recentProgress else None


class Progress:
    def __init__(self, content: dict[str, Any]) -> None:
        import json

        self.json = json.dumps(content)


def test_metrics_of_a_query_go_on_when_it_is_started_again() -> None:
    assert metrics_of(Query("one", [])) == Metrics()  # type: ignore[arg-type]
    assert metrics_of(Query("one", [report(0, late=1), report(1)])).late == 1  # type: ignore[arg-type]
    again = metrics_of(Query("one", [report(2, late=4)]))  # type: ignore[arg-type]
    assert (again.batches, again.late) == (3, 5)


def test_the_text_is_what_prometheus_reads() -> None:
    text = prometheus_text(Metrics(batch=3, events=7, late=2, watermark=1.7e9, batch_seconds=0.25), now=1.7e9 + 5)
    assert text.endswith("\n")
    names = set()
    for help_line, type_line, sample in zip(*[iter(text.splitlines())] * 3, strict=True):
        name = sample.split()[0]
        assert help_line.startswith(f"# HELP {name} ")
        assert type_line == f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
        assert SAMPLE.fullmatch(sample), sample
        names.add(name)
    assert {"trendloom_events_total 7", "trendloom_late_events_total 2", "trendloom_watermark_lag_seconds 5.0"} <= set(
        text.splitlines()
    )
    assert {"trendloom_results_total", "trendloom_batch_duration_seconds", "trendloom_state_bytes"} <= names


def test_what_is_not_known_is_not_told() -> None:
    assert "trendloom_watermark" not in prometheus_text(Metrics(), now=0.0)
