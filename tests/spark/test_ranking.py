"""Ranked queries on Spark give the rows of the reference, in its order, however rows and keys are spread over tasks.

A job costs half a second however small it is, so random queries run as workloads over one stream: one job for those
that have a key, one for each whose time is cut at windows. The stream is full of ties: equal times, scores, NULLs.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from tests.property.amounts import first_cases
from tests.property.compare import canonical, rows_of
from tests.property.strategies import ARROW
from tests.property.strategies_ranking import KINDS, RankedCase, ranked_cases

import trendloom as tl
from trendloom.engines.answers import answers
from trendloom.errors import BindError, OptionError, PlanError
from trendloom.options import Options
from trendloom.spark import detect

EVENTS = 14
PAIR = "PATTERN SEQ(A a, B b) WHERE [k] RANK BY a.x + b.x DESC"
BY_KEY = f"{PAIR} LIMIT 2 WITHIN 8 SLIDE 3"
OVERALL = f"{PAIR} LIMIT 3 OVERALL WITHIN 8 SLIDE 3"
ONE_BOARD = f"RETURN a.id, b.id AS other {PAIR} LIMIT 3 OVERALL"
NO_KEY = "PATTERN SEQ(A a, B b) RANK BY a.x + b.x LIMIT 2 OVERALL WITHIN 8 SLIDE 3"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def events(seed: int, count: int = EVENTS) -> pa.Table:
    """Events with few times before and after zero, few values, and some that hold the same."""
    draw = random.Random(seed)
    rows = [
        {"id": number // 2, "type": draw.choice("AAABBC"), "time": draw.randrange(-9, 9), "g": draw.choice("uv"),
         "x": draw.choice([1, 1, 2, 3, None]), "y": draw.choice([0.5, -1.5]), "k": draw.randrange(4)}
        for number in range(count)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=ARROW)


def spread(spark: Any, table: pa.Table, seed: int, parts: int) -> Any:
    """The same events as a DataFrame, in another order and in so many parts."""
    rows = table.to_pylist()
    random.Random(seed).shuffle(rows)
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=table.schema)).repartition(parts)


def in_order(table: pa.Table) -> list[Any]:
    return [canonical(row) for row in table.to_pylist()]


def queries(kind: str, stream: pa.Table, count: int) -> list[str]:
    """Random ranked queries that have rows over a stream; the same in every run."""

    def with_rows(case: RankedCase) -> str | None:
        try:
            return case.query if len(tl.run(case.query, stream, engine="reference")) > 1 else None
        except (BindError, PlanError):
            return None

    return first_cases(ranked_cases(KINDS[kind]), with_rows, count, seed=5, most=20 * count)


@pytest.mark.parametrize(("kind", "count"), [("sequences", 12), ("joined", 8)])
def test_random_queries_give_the_rows_of_the_reference(spark: Any, kind: str, count: int) -> None:
    stream = events(3)
    asked = queries(kind, stream, count)
    assert len(asked) == count
    text = "\n".join(f"QUERY q{number}:\n{query}" for number, query in enumerate(asked))
    found = answers(text, spread(spark, stream, 1, 5), Options(engine="spark"))
    for query, answer in zip(asked, found, strict=True):
        expected = tl.run(query, stream, engine="reference")
        assert rows_of(pa.Table.from_batches(list(answer.batches))) == rows_of(expected), query


@pytest.mark.parametrize(
    ("query", "paths"), [(BY_KEY, ("cut",)), (OVERALL, ("general",)), (ONE_BOARD, ()), (NO_KEY, ("general", "auto"))]
)
def test_ranks_do_not_depend_on_partitions_paths_or_the_order_of_rows(
    spark: Any, query: str, paths: tuple[str, ...]
) -> None:
    stream = events(8, 60)
    expected = tl.run(query, stream, engine="local")
    assert in_order(tl.run(query, spread(spark, stream, 2, 7))) == in_order(expected)
    for number, path in enumerate(paths):
        frame = spread(spark, stream, number, 2 + number)
        assert rows_of(detect(frame, query, partitions=(1, 3)[number % 2], path=path).toArrow()) == rows_of(expected)
    assert in_order(tl.run(query, spread(spark, stream, 4, 3), limit=4)) == in_order(expected.slice(0, 4))


def test_a_workload_in_one_table_ranks_partitions_together(spark: Any) -> None:
    stream, asked = events(9, 60), {"by_key": BY_KEY, "overall": OVERALL, "one": ONE_BOARD}
    text = "\n".join(f"QUERY {name}: {query}" for name, query in asked.items())
    found = detect(spread(spark, stream, 5, 4), text, partitions=3).toArrow().to_pylist()
    for name, query in asked.items():
        expected = tl.run(query, stream, engine="local")
        mine = [{key: row[key] for key in expected.column_names} for row in found if row["query"] == name]
        assert rows_of(mine) == rows_of(expected), name


def test_what_cannot_be_cut_is_refused(spark: Any) -> None:
    frame = spread(spark, events(1), 1, 2)
    with pytest.raises(OptionError, match="its partitions are ranked together"):
        detect(frame, OVERALL, path="cut")
    with pytest.raises(OptionError, match="it has no windows to cut between"):
        detect(frame, "PATTERN SEQ(A a, B b) RANK BY a.x LIMIT 1", path="cut")


def test_an_event_without_a_time_is_refused_where_time_is_cut(spark: Any) -> None:
    untimed = pa.concat_tables([events(1), pa.Table.from_pylist([{"id": 99, "type": "A", "x": 1}], schema=ARROW)])
    with pytest.raises(Exception, match="1 of 11 events have no time"):
        detect(spark.createDataFrame(untimed), NO_KEY).toArrow()
