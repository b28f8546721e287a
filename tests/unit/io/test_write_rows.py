"""Writing: exact values in every format, files that appear whole or not at all, bounded memory."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trendloom.errors import OptionError, RunError
from trendloom.io.read import read
from trendloom.io.write import EXACT, write

MOMENT = datetime.datetime(2013, 7, 4)


def lines(table: pa.Table, format: str = "jsonl") -> list[str]:
    target = io.BytesIO()
    write(table, format, target)
    return target.getvalue().decode().splitlines()


def one(array: object, column_type: pa.DataType | None = None) -> str:
    """The JSON text of a column's first value."""
    (line,) = lines(pa.table({"x": pa.array(array, column_type)}))
    return line.removeprefix('{"x": ').removesuffix("}")


@pytest.mark.parametrize(
    ("value", "column_type", "text"),
    [
        (2**62, pa.int64(), str(2**62)),
        (decimal.Decimal(2**100), pa.decimal128(38, 0), str(2**100)),
        (decimal.Decimal("-12.50"), pa.decimal128(10, 2), "-12.50"),
        (0.1, pa.float64(), "0.1"),
        (0.1, pa.float32(), "0.1"),
        (1e300, pa.float64(), "1e+300"),
        (float("nan"), pa.float64(), "null"),
        (float("-inf"), pa.float64(), "null"),
        (True, pa.bool_(), "true"),
        (None, pa.null(), "null"),
        ('say "é"\n', pa.string(), '"say \\"é\\"\\n"'),
        (MOMENT, pa.timestamp("s"), '"2013-07-04T00:00:00Z"'),
        (MOMENT, pa.timestamp("us", "UTC"), '"2013-07-04T00:00:00Z"'),
        (MOMENT.replace(microsecond=250_000), pa.timestamp("us"), '"2013-07-04T00:00:00.25Z"'),
        (1, pa.timestamp("ns"), '"1970-01-01T00:00:00.000000001Z"'),
        (-1, pa.timestamp("us"), '"1969-12-31T23:59:59.999999Z"'),
        (MOMENT.date(), pa.date32(), '"2013-07-04"'),
        (datetime.timedelta(seconds=2), pa.duration("s"), "2000000"),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        ([1, None], pa.list_(pa.int64()), "[1, null]"),
        ([], pa.list_(pa.int64()), "[]"),
        ({"a": 1, "b%": None}, pa.struct({"a": pa.int8(), "b%": pa.string()}), '{"a": 1, "b%": null}'),
    ],
    ids=str,
)
def test_values_as_json(value: object, column_type: pa.DataType, text: str) -> None:
    assert one([value], column_type) == text
    json.loads(text)


def test_zoned_times_are_written_in_utc() -> None:
    noon_in_new_york = pa.array([MOMENT.replace(hour=16)], pa.timestamp("us")).cast(
        pa.timestamp("us", "America/New_York")
    )
    assert one(noon_in_new_york) == '"2013-07-04T16:00:00Z"'


def test_exact_integers_held_as_text_are_written_as_integers_of_any_size() -> None:
    digits = "7" * 5000  # more than Python itself would print
    table = pa.table({"n": [digits, None]}, schema=pa.schema([pa.field("n", pa.string(), metadata=EXACT)]))
    assert lines(table) == [f'{{"n": {digits}}}', '{"n": null}']
    assert lines(table, "csv") == ["n", digits, ""]
    assert lines(pa.table({"n": ["7"]})) == ['{"n": "7"}']


EVENT = pa.struct({"time": pa.timestamp("us"), "type": pa.dictionary(pa.int32(), pa.string()), "x": pa.float64()})
MATCHES = pa.table(
    {
        "events": pa.array(
            [[{"time": MOMENT, "type": "A", "x": 1.5}, None], None, [], [{"time": MOMENT, "type": None, "x": None}]],
            pa.list_(EVENT),
        )
    }
)


def test_matches_are_lists_of_objects() -> None:
    event = {"time": "2013-07-04T00:00:00Z", "type": "A", "x": 1.5}
    rows = [json.loads(line)["events"] for line in lines(MATCHES)]
    assert rows == [[event, None], None, [], [{**event, "type": None, "x": None}]]


def test_slices_write_their_own_rows_only() -> None:
    assert lines(MATCHES.slice(2)) == lines(MATCHES)[2:]


def test_csv_holds_matches_as_json_text() -> None:
    rows = list(csv.reader(lines(MATCHES, "csv")))
    assert rows[0] == ["events"]
    assert json.loads(rows[1][0]) == json.loads(lines(MATCHES)[0])["events"]
    assert rows[2] == []


def test_csv_reads_back_as_it_was(tmp_path: Path) -> None:
    table = pa.table(
        {
            "COUNT(*)": [1, None],
            "a,b": ['say "x"', ""],
            "t": pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
            "s": [None, " y\nz "],
            "f": [0.1, 1e-300],
        }
    )
    write(table, "csv", tmp_path / "r.csv")
    assert read(tmp_path / "r.csv").equals(table)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_rows_read_back_as_they_were(format: str, tmp_path: Path) -> None:
    table = pa.table({"n": [1, None], "events": [[{"a": 1}], []]})
    assert write(table, format, tmp_path / f"r.{format}") == 2
    assert read(tmp_path / f"r.{format}").equals(table)


def test_no_rows_still_have_columns(tmp_path: Path) -> None:
    empty = pa.record_batch({"a": pa.array([], pa.int64())})
    for format in ("csv", "parquet"):
        assert write(iter([empty]), format, tmp_path / f"r.{format}") == 0
    assert (tmp_path / "r.csv").read_text() == "a\n"
    assert pq.read_schema(tmp_path / "r.parquet").names == ["a"]
    assert write(iter(()), "jsonl", tmp_path / "r.jsonl") == 0
    assert (tmp_path / "r.jsonl").read_text() == ""


def failing() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"a": [1]})
    raise ValueError("in the middle")


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_a_failure_leaves_the_old_file_and_nothing_else(format: str, tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    with pytest.raises(ValueError, match="in the middle"):
        write(failing(), format, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_prints_nothing(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(ValueError, match="in the middle"):
        write(failing(), "jsonl")
    assert capfdbinary.readouterr().out == b""


def test_standard_output_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    target = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(target))
    write(pa.table({"é": ["ü"]}), "jsonl")
    assert target.getvalue().decode() == '{"é": "ü"}\n'


def test_batches_are_written_as_they_come(tmp_path: Path) -> None:
    seen: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            (part,) = tmp_path.glob(".r.jsonl.*.part")
            seen.append(part.stat().st_size)
            yield pa.record_batch({"a": list(range(25_000))})

    assert write(batches(), "jsonl", tmp_path / "r.jsonl") == 75_000
    assert seen[0] == 0 < seen[1] < seen[2]


@pytest.mark.parametrize(
    ("name", "said"), [("", "is a folder"), ("none/r.csv", "there is no folder")], ids=["folder", "no-parent"]
)
def test_a_bad_destination_is_refused_before_work(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=said):
        write(failing(), "csv", tmp_path / name)


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trendloom.io.write.os.replace", full)
    with pytest.raises(RunError, match="No space left"):
        write(pa.table({"a": [1]}), "csv", tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(OptionError, match="unknown format 'jsonk'") as caught:
        write(pa.table({"a": [1]}), "jsonk")
    assert "did you mean 'jsonl'" in str(caught.value.hint)
