"""Rows in a database: a batch done twice leaves no double row, one that fails leaves nothing."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from trendloom.engines.spark.streaming.sinks import database
from trendloom.engines.spark.streaming.sinks.database import to_database, to_sqlite
from trendloom.errors import OptionError


class Rows:
    """A batch of a stream, as far as a database looks at it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def toArrow(self) -> pa.Table:
        return self.table


def numbers(*values: int) -> Any:
    return Rows(pa.table({"n": pa.array(values, pa.int64())}))


def content(path: Path, table: str = "m") -> list[Any]:
    with sqlite3.connect(path) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def test_a_batch_that_is_done_again_leaves_no_double_row(tmp_path: Path) -> None:
    sink = to_sqlite(str(tmp_path / "r.db"), "m", stream="s")
    for batch, rows in ((0, numbers(1)), (1, numbers(2, 3)), (1, numbers(2, 3)), (2, numbers())):
        sink(rows, batch)
    assert content(tmp_path / "r.db") == [(1,), (2,), (3,)]
    assert content(tmp_path / "r.db", "trendloom_batches") == [("s", "m", 2)]


def test_a_new_checkpoint_is_another_stream(tmp_path: Path) -> None:
    for stream in ("old", "new"):
        to_sqlite(str(tmp_path / "r.db"), "m", stream=stream)(numbers(1), 0)
    assert content(tmp_path / "r.db") == [(1,), (1,)]


def test_two_tables_of_one_stream(tmp_path: Path) -> None:
    for table in ("m", "other"):
        to_sqlite(str(tmp_path / "r.db"), table, stream="s")(numbers(1), 0)
    assert content(tmp_path / "r.db", "other") == [(1,)]


def test_values_as_sqlite_holds_them(tmp_path: Path) -> None:
    event = {"time": datetime(2024, 1, 1, 12), "x": 1.5}
    rows = pa.table(
        {
            'COUNT("*")': pa.array([Decimal(7), Decimal(10**30)], pa.decimal128(38, 0)),
            "window_start": pa.array([datetime(2024, 1, 1), None], pa.timestamp("us")),
            "ok": [True, None],
            "events": [[event], None],
        }
    )
    to_sqlite(str(tmp_path / "r.db"), "m", stream="s")(Rows(rows), 0)  # type: ignore[arg-type]
    first, second = content(tmp_path / "r.db")
    assert first[:3] == (7, "2024-01-01T00:00:00Z", 1)
    assert json.loads(first[3]) == [{"time": "2024-01-01T12:00:00Z", "x": 1.5}]
    assert second == (str(10**30), None, None, None)


def test_a_failed_batch_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = to_sqlite(str(path), "m", stream="s")
    sink(numbers(1), 0)
    with sqlite3.connect(path) as connection:
        refusal = "WHEN NEW.n = 3 BEGIN SELECT RAISE(ABORT, 'no threes'); END"
        connection.execute(f"CREATE TRIGGER no_threes BEFORE INSERT ON m {refusal}")
    with pytest.raises(sqlite3.IntegrityError, match="no threes"):
        sink(numbers(2, 3), 1)
    assert content(path) == [(1,)]
    assert content(path, "trendloom_batches") == [("s", "m", 0)]
    sink(numbers(2), 1)
    assert content(path) == [(1,), (2,)]


def test_columns_of_a_query_that_was_added_come_to_the_table(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    sink = to_sqlite(str(path), "m", stream="s")
    sink(numbers(1), 0)
    for batch in (1, 2):
        sink(Rows(pa.table({"n": [2], "other": ["x"]})), batch)  # type: ignore[arg-type]
    sink(numbers(3), 3)
    assert content(path) == [(1, None), (2, "x"), (2, "x"), (3, None)]


def test_a_locked_file_is_an_error_and_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WAIT_FOR_LOCK", 0.05)
    path = tmp_path / "r.db"
    sink = to_sqlite(str(path), "m", stream="s")
    sink(numbers(1), 0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sink(numbers(2), 1)
    other.close()
    sink(numbers(2), 1)
    assert content(path) == [(1,), (2,)]


def test_any_driver_of_python(tmp_path: Path) -> None:
    sink = to_database(lambda: sqlite3.connect(tmp_path / "r.db"), "m", stream="s")
    for _ in range(2):
        sink(numbers(4), 0)
    assert content(tmp_path / "r.db") == [(4,)]
    with sqlite3.connect(tmp_path / "r.db") as connection:
        (declared,) = connection.execute("SELECT type FROM pragma_table_info('m')").fetchone()
    assert declared == "BIGINT"


def test_an_unknown_paramstyle_is_refused() -> None:
    with pytest.raises(OptionError, match="unknown paramstyle 'named'"):
        to_database(lambda: None, "m", paramstyle="named")


def test_without_a_stream_around_it_a_sink_asks_for_a_name(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has no name here"):
        to_sqlite(str(tmp_path / "r.db"), "m")(numbers(1), 0)
