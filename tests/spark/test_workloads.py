"""Several queries over one stream on Spark: the rows of each as if it ran alone, one read, one move per key set."""

from __future__ import annotations

import random
import re
import warnings
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.property import test_shared_counts as counted
from tests.property.amounts import amount, first_cases
from tests.property.compare import rows_of
from tests.property.strategies import ARROW, Knobs, queries, streams
from tests.refused_pattern import PASSED_IN_MANY_WAYS

import trendloom as tl
from trendloom.engines.spark import workload_job as one_job
from trendloom.engines.spark.answers import bind_all, job_of
from trendloom.engines.spark.frames import Frame, describe
from trendloom.errors import BindError, OptionError, PlanError, RunError, TrendloomError
from trendloom.options import Options
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.planning import plan_queries
from trendloom.runtime.reading import queries_of
from trendloom.spark import detect

WORKLOAD = """
QUERY pairs: PATTERN SEQ(A a, B b) WHERE [g]
QUERY counts: RETURN g, COUNT(*) PATTERN SEQ(A a, B+ b[]) GROUP BY g
QUERY all: RETURN COUNT(*), SUM(A.x) PATTERN SEQ(A a, B+ b[]) WHERE [g]
QUERY high: RETURN a.id AS first PATTERN SEQ(A a, B b) WHERE a.x > b.x
QUERY by_x: RETURN x, COUNT(*) PATTERN A GROUP BY x
QUERY nothing: PATTERN SEQ(C c, D d) WHERE [g]
"""


def planned(frame: Frame, text: str) -> PhysicalWorkload:
    return plan_queries(tuple(bind_all(queries_of(text), frame)))


def found_by(table: pa.Table, name: str) -> list[dict[str, Any]]:
    rows = [row for row in table.to_pylist() if row["query"] == name]
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def test_every_query_has_the_rows_that_it_has_alone(events: Any) -> None:
    together = tl.run(WORKLOAD, events)
    expected = tl.run(WORKLOAD, events.toArrow(), engine="reference")
    for query in queries_of(WORKLOAD):
        assert query.name is not None
        alone = tl.run(WORKLOAD, events, query=query.name)
        assert found_by(together, query.name) == found_by(alone, query.name)
        assert rows_of(found_by(together, query.name)) == rows_of(found_by(expected, query.name))
    assert found_by(together, "nothing") == []


def test_detect_gives_one_table_with_the_names_of_queries(events: Any) -> None:
    found = detect(events, WORKLOAD, partitions=3)
    assert found.columns[0] == "query"
    table = found.toArrow()
    for name in ("pairs", "counts", "all", "high", "by_x"):
        alone = detect(events, WORKLOAD, query=name).toArrow()
        assert rows_of(found_by(table, name)) == rows_of(
            found_by(alone.add_column(0, "query", [[name] * len(alone)]), name)
        )
    assert [row["COUNT(*)"] for row in found.filter("query = 'all'").collect()] == [2]


def test_several_queries_take_the_general_path(events: Any) -> None:
    with pytest.raises(OptionError, match="take the path 'general'") as caught:
        detect(events, WORKLOAD, path="auto")
    assert "pairs, counts, all" in str(caught.value)


def test_queries_whose_columns_differ_in_kind_are_refused_by_detect_alone(events: Any) -> None:
    text = "QUERY a: RETURN a.x AS v PATTERN A a WHERE [g] QUERY b: RETURN a.id AS v PATTERN A a WHERE [g]"
    with pytest.raises(BindError, match="cannot share one table") as caught:
        detect(events, text)
    assert "query a: column 'v' is a" in str(caught.value)
    assert "query b: column 'v' is a" in str(caught.value)
    with pytest.raises(BindError, match="cannot share one table"):
        tl.run(text, events)


def test_columns_of_all_queries_are_null_where_a_query_lacks_them(events: Any) -> None:
    text = """QUERY pairs: RETURN a.x AS v, b.id AS last PATTERN SEQ(A a, B b) WHERE [g]
              QUERY counts: RETURN g, COUNT(*) AS v PATTERN A GROUP BY g"""
    for found in (detect(events, text).toArrow(), tl.run(text, events)):
        assert set(found.column_names) == {"query", "g", "v", "last"}
        rows = found.to_pylist()
        assert {row["query"] for row in rows} == {"pairs", "counts"}
        assert all((row["last"] is None) == (row["query"] == "counts") for row in rows)
        assert all(row["v"] is not None for row in rows)


def test_all_queries_that_cannot_run_are_named(events: Any) -> None:
    text = f"QUERY p: RETURN a.y PATTERN A a QUERY q: PATTERN A QUERY r: {PASSED_IN_MANY_WAYS}"
    for ask in (detect, lambda frame, asked: tl.run(asked, frame)):
        with pytest.raises(BindError, match="2 of 3 queries are refused: p, r"):
            ask(events, text)
        with pytest.raises(PlanError, match="2 of 3 queries are refused: p, r"):
            ask(events, text.replace("RETURN a.y PATTERN A a", PASSED_IN_MANY_WAYS))


def plan_of(frame: Frame, text: str) -> str:
    workload = planned(frame, text)
    partition_groups = one_job.partition_groups_of(workload, workload.key_sets, lambda one: job_of(frame, "exact", one))
    found: str = one_job.parcels(frame.df, partition_groups)._jdf.queryExecution().executedPlan().toString()
    return found


def test_one_read_and_one_shuffle_for_queries_of_one_key_set(spark: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "events.parquet")
    pq.write_table(pa.table({"time": [1, 2], "type": ["A", "B"], "g": ["u", "u"], "x": [1, 2], "more": [1, 2]}), path)
    frame = describe(spark.read.parquet(path), Options(engine="spark").columns())
    one = """QUERY a: RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE [g] AND a.x > 1
             QUERY b: RETURN a.time PATTERN A a WHERE [g] AND a.x < 0"""
    shown = plan_of(frame, one)
    assert (shown.count("FileScan"), shown.count("Exchange")) == (1, 1)
    scan = re.search(r"FileScan parquet \[(.*?)\]", shown)
    assert scan is not None
    assert "more" not in scan[1]
    two = one + " QUERY c: RETURN COUNT(*) PATTERN B b WHERE [x]"
    shown = plan_of(frame, two)
    assert (shown.count("FileScan"), shown.count("Exchange"), shown.count("Generate explode")) == (1, 1, 1)


def test_equal_times_are_told_of_the_query_that_has_them(spark: Any) -> None:
    table = pa.table({"time": [1] * 40 + [2], "type": ["A"] * 40 + ["B"], "g": [1] * 41})
    text = """QUERY strict: PATTERN SEQ(A a, B b) WHERE [g] SEMANTICS contiguous
              QUERY counts: RETURN g, COUNT(*) PATTERN SEQ(A, B) GROUP BY g"""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tl.run(text, table, engine="spark")
        together = {str(one.message) for one in told}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tl.run(text, table, engine="local")
        assert together == {str(one.message) for one in told}


COUNTED = """
QUERY one: RETURN g, COUNT(*) PATTERN SEQ(A, B+, C) WHERE [g] GROUP BY g WITHIN 10 SLIDE 4
QUERY two: RETURN COUNT(*), COUNT(B) PATTERN SEQ(A, B) WHERE [g] WITHIN 10 SLIDE 4
QUERY three: RETURN x, COUNT(*) PATTERN SEQ(A a, B b) WHERE [g, x] AND a.id > 9 GROUP BY x
QUERY four: RETURN g, x, COUNT(*) PATTERN SEQ(A, B, A) WHERE [x, g] GROUP BY g, x
QUERY big: RETURN g, COUNT(*) PATTERN SEQ(A, B+, A) WHERE [g] GROUP BY g
QUERY sums: RETURN g, SUM(B.x), AVG(A.id) PATTERN SEQ(A, B, C) WHERE [g] GROUP BY g WITHIN 20 SLIDE 10
QUERY ends: RETURN g, MIN(B.id), MAX(B.id) PATTERN SEQ(A, B, C) WHERE [g] GROUP BY g WITHIN 20 SLIDE 10
QUERY quiet: RETURN g, COUNT(*) PATTERN SEQ(A, NOT C, B) WHERE [g] GROUP BY g WITHIN 20 SLIDE 20
QUERY later: RETURN COUNT(*) PATTERN SEQ(B, NOT A, C) WHERE [g] WITHIN 12 SLIDE 4
QUERY pair: RETURN COUNT(*) PATTERN SEQ(C c, A) WHERE [g] AND c.x = 1 WITHIN 12 SLIDE 4
QUERY triple: RETURN COUNT(*), COUNT(C) PATTERN SEQ(C, A, C) WHERE [g] WITHIN 12 SLIDE 4
"""


def test_queries_that_are_counted_together_have_their_rows(spark: Any) -> None:
    """Windows, conditions, NOTs, sums and groups of their own; one has numbers that are too large for the sweep."""
    draw = random.Random(11)
    table = pa.table(
        {
            "id": range(500),
            "time": [draw.randrange(400) for _ in range(500)],
            "type": ["A", *(draw.choice("ABBBC") for _ in range(498)), "A"],
            "g": [draw.choice("uvw") for _ in range(500)],
            "x": [draw.randrange(2) for _ in range(500)],
        }
    )
    workload = planned(describe(spark.createDataFrame(table), Options(engine="spark").columns()), COUNTED)
    assert [group.members for group in workload.shared_groups] == [(0, 1, *range(4, 11)), (2, 3)]
    names = re.findall(r"QUERY (\w+):", COUNTED)
    found = rows_by_query(COUNTED, spark.createDataFrame(table).repartition(3), names)
    for name in names:
        assert rows_of(found[name]) == rows_of(tl.run(COUNTED, table, query=name).drop("query"))
    assert max(row["COUNT(*)"] for row in found["big"].to_pylist()) > 2**62
    assert "in each task: count three, four in one sweep" in tl.explain(COUNTED, table, engine="spark")


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: repr(list(row.values())[:3]))


def _plain(value: Any) -> Any:
    """Counts are decimals on Spark."""
    return int(value) if isinstance(value, Decimal) else value


def test_random_queries_in_one_job_have_the_rows_that_each_has_alone(spark: Any) -> None:
    """Counts, sums and extremes, repetitions, NOTs, conditions, groups, windows, all semantics."""
    drawn = st.tuples(*(counted.queries(number) for number in range(12)), counted.streams())
    (case,) = first_cases(drawn, lambda case: case if len(case[-1]) > 20 else None, 1, seed=7, most=40)
    *texts, table = case
    found = tl.run("\n".join(texts), table, engine="spark")
    for number, one in enumerate(texts):
        wanted = tl.run(one, table).drop_columns(["query"])
        mine = found.filter(pc.equal(found["query"], f"q{number}")).select(wanted.column_names)
        assert counted.alike(sorted_rows(mine), sorted_rows(wanted)), one


def test_a_limit_is_one_of_every_query(events: Any) -> None:
    found = tl.run("QUERY a: PATTERN A WHERE [g] QUERY b: PATTERN B WHERE [g]", events, limit=1)
    assert found["query"].to_pylist() == ["a", "b"]


def test_what_a_task_refuses_is_said_in_its_words(spark: Any) -> None:
    rows = pa.table({"time": list(range(40)), "type": ["A"] * 40, "g": [1] * 40})
    text = "QUERY few: PATTERN A a WHERE [g] QUERY many: PATTERN A+ a[] WHERE [g]"
    with pytest.raises(RunError, match="1,099,511,627,775"):
        tl.run(text, rows, engine="spark")
    missing = pa.table({"time": pa.array([1, None], pa.int64()), "type": ["A", "A"], "g": [1, 1]})
    with pytest.raises(TrendloomError, match="no time"):
        tl.run("QUERY a: PATTERN A a WHERE [g] QUERY b: PATTERN A b WHERE [g]", missing, engine="spark")


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[str], list[Any]]:
    kinds = [
        Knobs(outputs=("trends", "complete", "collapsed", "values")),
        Knobs(outputs=("aggregates",), most_conjuncts=1),
    ]
    drawn = [draw(queries(draw(st.sampled_from(kinds)))) for _ in range(8)]
    return drawn, [row for _ in range(3) for row in draw(streams(5, ["A", "B", "C"]))]


def random_workloads(count: int) -> list[tuple[dict[str, str], pa.Table]]:
    """Queries that run, five and more of them over one stream."""
    found: list[tuple[dict[str, str], pa.Table]] = []

    @seed(23)
    @settings(max_examples=6 * count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(workloads())
    def collect(drawn: tuple[list[str], list[Any]]) -> None:
        if len(found) == count:
            return
        rows = pa.Table.from_pylist(drawn[1], schema=ARROW)
        good = {}
        for number, query in enumerate(drawn[0]):
            try:
                tl.run(query, rows, engine="local")
            except (BindError, PlanError, OptionError):
                continue
            good[f"q{number}"] = query
        if len(good) > 4 and len(rows):
            found.append((good, rows))

    collect()
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_workloads_have_the_rows_of_the_reference(spark: Any) -> None:
    found = random_workloads(amount(5))
    assert len(found) == amount(5)
    for number, (named, table) in enumerate(found):
        text = "\n".join(f"QUERY {name}: {query}" for name, query in named.items())
        rows = table.to_pylist()
        random.Random(number).shuffle(rows)
        df = spark.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW)).repartition(1 + number % 3)
        answers = rows_by_query(text, df, list(named))
        for name, query in named.items():
            assert rows_of(answers[name]) == rows_of(tl.run(query, table, engine="reference")), query


def rows_by_query(text: str, df: Any, names: list[str]) -> dict[str, pa.Table]:
    """Every query with its own columns, out of one run."""
    from trendloom.engines.answers import answers

    found = answers(text, df, Options(engine="spark"))
    return {name: pa.Table.from_batches(list(one.batches)) for name, one in zip(names, found, strict=True)}
