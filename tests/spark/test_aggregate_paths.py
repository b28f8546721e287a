"""Every path that aggregates can take through Spark gives the rows of the local engine."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.property.compare import rows_of

import trendloom as tl
from trendloom.engines.spark import batch, paths
from trendloom.engines.spark.answers import bind_all, job_of
from trendloom.engines.spark.errors import unwrap
from trendloom.engines.spark.frames import describe
from trendloom.engines.spark.plan_steps import Path
from trendloom.errors import DataError, OptionError, RunError
from trendloom.options import Options
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import queries_of
from trendloom.spark import detect

WINDOW = "WITHIN 20 seconds SLIDE 5 seconds"
MEASURES = "COUNT(*), COUNT(B), SUM(A.n), MIN(B.x), MAX(A.n), AVG(A.n)"
QUERIES = {
    "by key": f"RETURN key, {MEASURES} PATTERN SEQ(A+, B) WHERE [key] GROUP BY key {WINDOW}",
    "groups of keys": f"RETURN {MEASURES} PATTERN SEQ(A, NOT C, B) WHERE [key] {WINDOW}",
    "no key": f"RETURN {MEASURES} PATTERN SEQ(A, B) SEMANTICS skip-till-next-match",
    "compared": f"RETURN key, COUNT(*), SUM(A.n) PATTERN A+ WHERE [key] AND A.x < NEXT(A).x GROUP BY key {WINDOW}",
    "compared, no key": f"RETURN COUNT(*), MAX(A.n) PATTERN SEQ(A a, B b) WHERE a.x < NEXT(b).x {WINDOW}",
}
ALLOWED = {
    "by key": ("reduced", "cut", "auto"),
    "groups of keys": ("reduced", "cut"),
    "no key": ("reduced", "auto"),
    "compared": ("cut", "auto"),
    "compared, no key": ("cut", "auto"),
}


@pytest.fixture(autouse=True)
def _every_input_is_worth_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose among all paths, though the streams of tests are small."""
    monkeypatch.setattr(paths, "WORTH_A_LOOK", 0)


def events(rows: int = 240) -> pa.Table:
    """Events in order of time, several at every time, some of no key."""
    made = np.random.default_rng(5)
    return pa.table(
        {
            "time": np.sort(made.integers(-40, 60, rows)),
            "type": np.array(["A", "B", "C"])[made.integers(0, 3, rows)],
            "key": pa.array([None if key == 3 else -0.0 if key == 1 else key % 2 for key in made.integers(0, 4, rows)],
                            pa.float64()),
            "x": made.integers(0, 9, rows) / 4,
            "n": made.integers(-9, 9, rows),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("by key", "sorted"),
        ("by key", "shuffled"),
        ("groups of keys", "shuffled"),
        ("no key", "sorted"),
        ("compared", "shuffled"),
        ("compared, no key", "sorted"),
        ("compared, no key", "shuffled"),
    ],
)
def test_every_path_gives_the_rows_of_the_local_engine(
    name: str, order: str, spark: Any, session_settings: Any
) -> None:
    query, table = QUERIES[name], events()
    expected = rows_of(tl.run(query, table))
    rows = np.arange(len(table)) if order == "sorted" else np.random.default_rng(1).permutation(len(table))
    session_settings(execution__arrow__maxRecordsPerBatch="10" if order == "sorted" else "10001")
    df = spark.createDataFrame(table.take(pa.array(rows)))
    for partitions, path in zip((2, 7, 1), ALLOWED[name], strict=False):
        found = detect(df, query, path=path, partitions=partitions).toArrow()
        assert rows_of(found) == expected, path


def files(folder: FilePath, table: pa.Table, order: str) -> FilePath:
    """Three files of several row groups, whose times touch (sorted) or overlap (shuffled)."""
    rows = np.arange(len(table)) if order == "sorted" else np.random.default_rng(1).permutation(len(table))
    for number, some in enumerate(np.array_split(rows, 3)):
        pq.write_table(table.take(pa.array(some)), folder / f"{number}.parquet", row_group_size=30)
    return folder


def by_path(spark: Any, folder: FilePath, query: str, path: Path | None, order: tuple[str, ...] = ()) -> pa.Table:
    frame = describe(spark.read.parquet(str(folder)), Options(engine="spark", order=order).columns())
    (plan,) = bind_all(queries_of(query), frame)
    job = job_of(frame, "exact", plan_query(plan))
    return batch.run(frame.df, job, path=path, files=tuple(folder.iterdir())).toArrow()


@pytest.mark.parametrize(("name", "order"), [("by key", "sorted"), ("by key", "shuffled"), ("no key", "shuffled")])
def test_tasks_that_read_parquet_themselves_give_the_same_rows(
    name: str, order: str, spark: Any, tmp_path: FilePath
) -> None:
    table = events()
    folder = files(tmp_path, table, order)
    expected = rows_of(tl.run(QUERIES[name], table))
    assert rows_of(by_path(spark, folder, QUERIES[name], Path.DIRECT)) == expected
    assert rows_of(by_path(spark, folder, QUERIES[name], Path.REDUCED)) == expected
    assert rows_of(tl.run(QUERIES[name], folder, engine="spark")) == expected


def test_columns_order_equal_times_on_every_path(spark: Any, tmp_path: FilePath) -> None:
    table, query, order = events(), QUERIES["by key"], ("n", "x")
    expected = rows_of(tl.run(query, table, order=order))
    assert expected != rows_of(tl.run(query, table))
    folder = files(tmp_path, table, "shuffled")
    for path in (Path.DIRECT, Path.REDUCED, Path.CUT):
        assert rows_of(by_path(spark, folder, query, path, order)) == expected, path


def test_rows_come_in_the_order_of_columns_too(spark: Any) -> None:
    def listed(engine: str) -> list[list[Any]]:
        found = tl.run("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 2", events(), engine=engine, order=("n", "x"))
        return [[(e["time"], e["n"], e["x"]) for e in row] for row in found["events"].to_pylist()]

    assert listed("spark") == listed("local") == sorted(listed("local"))


def test_times_as_timestamps_are_cut_and_read_alike(spark: Any, tmp_path: FilePath) -> None:
    table = events()
    times = pa.array(table["time"].to_numpy() * 1_000_000).cast(pa.timestamp("us"))
    table = table.set_column(0, "time", times)
    expected = rows_of(tl.run(QUERIES["by key"], table))
    for path in (Path.DIRECT, Path.REDUCED, Path.CUT):
        assert rows_of(by_path(spark, files(tmp_path, table, "sorted"), QUERIES["by key"], path)) == expected, path


def test_counts_of_any_size_are_the_same_on_every_path(spark: Any) -> None:
    table = pa.table({"time": range(300), "type": ["A"] * 300})
    df, query = spark.createDataFrame(table), "RETURN COUNT(*) PATTERN A+"
    assert rows_of(detect(df, query, path="reduced", numeric="log").toArrow()) == rows_of(
        tl.run(query, table, numeric="log")
    )
    said = []
    for path in ("general", "reduced"):
        with pytest.raises(Exception, match="RunError") as raised:
            detect(df, query, path=path).toArrow()
        said.append(unwrap(raised.value))
    assert isinstance(said[0], RunError)
    assert "DECIMAL(38,0)" in str(said[0])
    assert str(said[0]) == str(said[1])


def test_a_path_that_does_not_fit_is_refused(spark: Any) -> None:
    df = spark.createDataFrame(events())
    with pytest.raises(OptionError, match="no windows to cut"):
        detect(df, QUERIES["no key"], path="cut")
    with pytest.raises(OptionError, match="not matrices"):
        detect(df, QUERIES["compared"], path="reduced")
    with pytest.raises(OptionError, match="there is no path"):
        detect(df, QUERIES["compared"], path="reducd")
    frame = describe(df, Options(engine="spark").columns())
    (plan,) = bind_all(queries_of(QUERIES["by key"]), frame)
    with pytest.raises(OptionError, match="Parquet"):
        batch.run(frame.df, job_of(frame, "exact", plan_query(plan)), path=Path.DIRECT)


def test_a_missing_time_is_refused_on_every_path(spark: Any) -> None:
    table = events()
    late = table.set_column(0, "time", pa.array([None, *table["time"].to_pylist()[1:]], pa.int64()))
    df = spark.createDataFrame(late.set_column(1, "type", pa.array(["A"] * len(table))))
    with pytest.raises(DataError, match="no time"):
        detect(df, QUERIES["by key"], path="cut")


def test_integers_at_the_bounds_of_64_bits_take_another_path(spark: Any) -> None:
    table = events().set_column(4, "n", pa.array([2**63 - 1] * 240))
    query = "RETURN key, MAX(A.n) PATTERN A WHERE [key] GROUP BY key"
    df = spark.createDataFrame(table).repartition(3)
    assert rows_of(detect(df, query, path="auto").toArrow()) == rows_of(tl.run(query, table))


def test_a_small_input_is_not_looked_at(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    df = spark.createDataFrame(events()).repartition(3)
    looked: list[Path] = []
    parts_by_number = paths._parts_by_number

    def look(rows: Any, job: Any) -> pa.Table:
        looked.append(Path.REDUCED)
        return parts_by_number(rows, job)

    monkeypatch.setattr(paths, "_parts_by_number", look)
    found = [rows_of(detect(df, QUERIES["by key"]).toArrow())]
    assert looked == [Path.REDUCED]
    monkeypatch.setattr(paths, "WORTH_A_LOOK", 1 << 26)
    found.append(rows_of(detect(df, QUERIES["by key"]).toArrow()))
    assert looked == [Path.REDUCED]
    assert found[0] == found[1] == rows_of(tl.run(QUERIES["by key"], events()))
