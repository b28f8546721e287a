"""What each engine says in EXPLAIN of its way with the events, word by word."""

from __future__ import annotations

import pytest
from tests.unit.explained_schema import SCHEMA

from trendloom.engines.local import plan_steps as local
from trendloom.engines.spark import plan_steps as spark
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.display import Branch, draw
from trendloom.planner.plan import Physical
from trendloom.runtime.planning import plan_query


def planned(text: str) -> Physical:
    return plan_query(bind(parse_query(text), SCHEMA))


def on_local(text: str) -> str:
    return "\n".join(draw(Branch("told", below=local.describe_execution(planned(text)))))


def on_spark(text: str) -> str:
    return "\n".join(draw(Branch("told", below=spark.describe_execution(planned(text)))))


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        (
            "RETURN user, MAX(m.x) PATTERN M m+ SEMANTICS contiguous WHERE m.y > 0.5 GROUP BY user WITHIN 1 h",
            [
                "   ├─ 1.  read all 5 columns, events of every type into memory",
                "   ├─ 2.  keep events that fit a position, sort by user and time",
                "   └─ 3.  one columnar call for all partitions",
            ],
        ),
        (
            "PATTERN SEQ(A a, B b+)",
            [
                "   ├─ 1.  read all 5 columns, events of 2 types into memory",
                "   ├─ 2.  keep events that fit a position, sort by time",
                "   └─ 3.  one columnar call",
            ],
        ),
    ],
)
def test_one_process_reads_sorts_and_calls_once(query: str, steps: list[str]) -> None:
    assert on_local(query).splitlines()[1:] == ["└─ execution  engine local", *steps]


def test_spark_spreads_the_events_by_the_partition_key() -> None:
    shown = on_spark("RETURN user, MIN(A.type) PATTERN SEQ(A, B) WHERE [x] GROUP BY user")
    assert shown.splitlines()[-7:-2] == [
        "├─ execution  engine spark",
        "│  ├─ 1.  read 4 of 5 columns, events of 2 types: project and filter as Spark columns",
        "│  ├─ 2.  repartition by x, user",
        "│  ├─ 3.  mapInArrow: one columnar call per task, for all its partitions",
        "│  └─ 4.  add up what the tasks found, per group and window",
    ]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("PATTERN SEQ(A, B) SEMANTICS contiguous WITHIN 1 h", ["passed its last event", "runs that may go on"]),
        ("PATTERN SEQ(A, NOT B) WITHIN 1 h", ["all that could still change it", "events of open windows"]),
        ("RETURN COUNT(*) PATTERN A+ WHERE [x] WITHIN 1 h", ["passed its end", "matrices, per key", "adds up"]),
        ("RETURN COUNT(*) PATTERN A+ WHERE A.x < NEXT(A).x WITHIN 1 h", ["passed its end", "events of open windows"]),
        ("PATTERN SEQ(A, B)", ["without WITHIN"]),
        ("PATTERN A a RANK BY a.x LIMIT 2 WITHIN 1 h", ["without SLIDE"]),
        ("PATTERN A a RANK BY a.x LIMIT 2 WITHIN 1 h SLIDE 1 h", ["passed its end", "events of open", "early=True"]),
        (
            "PATTERN A a WHERE [x] RANK BY a.y LIMIT 2 OVERALL WITHIN 1 h SLIDE 1 h",
            ["passed its end", "events of open windows", "best of all buckets of keys together"],
        ),
    ],
)
def test_how_a_live_stream_is_served(query: str, told: list[str]) -> None:
    lines = on_spark(query).splitlines()
    at = lines.index("└─ live       on a live stream")
    assert len(lines[at + 1 :]) == len(told)
    assert all(part in line for part, line in zip(told, lines[at + 1 :], strict=True))


def test_spark_moves_matrices_where_it_can() -> None:
    shown = on_spark("RETURN user, COUNT(*) PATTERN SEQ(A, B) WHERE [x] GROUP BY user")
    assert (
        "path reduced, if the input is large and its parts hardly overlap in time, which is decided at run time"
        in shown
    )
    assert "repartition matrices by x, user" in shown


def test_spark_without_a_key_is_one_task() -> None:
    shown = on_spark("PATTERN SEQ(A, B)")
    assert "2.  one task: there is no partition key" in shown
    assert "repartition" not in shown


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        (
            "PATTERN A a WHERE [user] RANK BY a.x LIMIT 3 OVERALL WITHIN 1 h SLIDE 1 h",
            ["repartition by user", "repartition the best 3 of each task, with their events, by window", "together"],
        ),
        ("PATTERN A a WHERE [user] RANK BY a.x LIMIT 3 OVERALL", ["send the best 3 of each task", "to one task"]),
        (
            "PATTERN A a RANK BY a.x LIMIT 3 WITHIN 1 h SLIDE 1 h",
            ["path cut, since there is no partition key", "repartition by segment of time", "ranks the windows"],
        ),
        ("PATTERN A a RANK BY a.x LIMIT 3", ["one task", "no windows (WITHIN ... SLIDE) to cut between"]),
    ],
)
def test_ranked_matches_are_spread_by_key_or_window(query: str, steps: list[str]) -> None:
    shown = on_spark(query)
    assert all(step in shown for step in steps)
