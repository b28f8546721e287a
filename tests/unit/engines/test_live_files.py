"""Files of a live folder, read by their own headers; what cannot be read keeps its text and its file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trendloom.engines.spark.streaming.sources import FILE, TEXT
from trendloom.engines.spark.streaming.sources.folder_files import Dialect, FileReader, dialect_of
from trendloom.errors import DataError, OptionError

COLUMNS = pa.schema([("time", pa.int64()), ("type", pa.string()), ("x", pa.float64())])


def events(path: Path, columns: pa.Schema = COLUMNS, *, strict: bool = True, **more: Any) -> list[dict[str, Any]]:
    kind = "parquet" if path.suffix == ".parquet" else "csv"
    reading = FileReader(kind, columns, ("time",), strict, **more)
    return pa.Table.from_batches(list(reading.events(f"file://{path}")), reading.result).to_pylist()


def written(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_go_by_the_names_in_the_header(tmp_path: Path) -> None:
    same = [{"time": 1, "type": "A", "x": 2.5}, {"time": 2, "type": "B", "x": None}]
    assert events(written(tmp_path, "time,type,x\n1,A,2.5\n2,B,\n")) == same
    assert events(written(tmp_path, "x,time,type\n2.5,1,A\n,2,B\n")) == same
    assert events(written(tmp_path, "more,x,type,y,time\nu,2.5,A,7,1\nv,,B,8,2\n")) == same


def test_fields_are_quoted_empty_or_of_several_lines(tmp_path: Path) -> None:
    path = written(tmp_path, 'type,x,time\n"a,""b""\nc", 7 ,1\n"",,2\n,"",\n')
    with pytest.raises(DataError, match="column 'x' is not of type double"):
        events(path)
    assert events(path, strict=False) == [
        {"time": None, "type": None, "x": None, TEXT: ',"",', FILE: str(path)},
        {"time": 1, "type": 'a,"b"\nc', "x": 7.0, TEXT: None, FILE: None},
        {"time": 2, "type": "", "x": None, TEXT: None, FILE: None},
    ]


def test_lines_that_cannot_be_read_keep_their_text_and_file(tmp_path: Path) -> None:
    path = written(tmp_path, b"x,time,type\n5,1,A\nmany,2,B\n6,3\n7,4,C,more\n8,5,\xff\n9,6,D\n")
    found = events(path, strict=False)
    assert [row for row in found if row[TEXT] is None] == [
        {"time": 1, "type": "A", "x": 5.0, TEXT: None, FILE: None},
        {"time": 6, "type": "D", "x": 9.0, TEXT: None, FILE: None},
    ]
    apart = [row for row in found if row[TEXT] is not None]
    assert [row[TEXT] for row in apart] == ["6,3", "7,4,C,more", "many,2,B", "8,5,\ufffd"]
    assert {row[FILE] for row in apart} == {str(path)}
    assert all(row["time"] is None and row["type"] is None for row in apart)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("time,type,x\n1,A,many\n", "'1,A,many': column 'x' is not of type double"),
        ("time,type,x\n1,A\n", "'1,A': its number of fields is not that of the header"),
        ("time,kind,x\n1,A,2\n", "'1,A,2': its header has no column 'type' \\(there is 'kind'\\)"),
        ("time,type,x,x\n1,A,2,3\n", "its header has column 'x' more than once"),
    ],
)
def test_what_cannot_be_read_stops_a_strict_stream(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"an event cannot be read: .*a.csv: .*{reason}") as raised:
        events(written(tmp_path, text))
    assert "late_to=" in str(raised.value)


def test_a_file_without_a_column_is_set_apart_line_by_line(tmp_path: Path) -> None:
    found = events(written(tmp_path, "time,type\n1,A\n2,B\n"), strict=False)
    assert [row[TEXT] for row in found] == ["1,A", "2,B"]


def test_times_in_text_stay_text_but_must_be_times(tmp_path: Path) -> None:
    columns = pa.schema([("time", pa.string()), ("type", pa.string())])
    found = events(written(tmp_path, "type,time\nA,2024-01-01T00:00:01Z\nB,soon\n"), columns, strict=False)
    assert [(row["time"], row[TEXT]) for row in found] == [(None, "B,soon"), ("2024-01-01T00:00:01Z", None)]


def test_types_are_those_of_the_stream(tmp_path: Path) -> None:
    columns = pa.schema(
        [("time", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("ok", pa.bool_()), ("d", pa.decimal128(20, 2))]
    )
    path = written(tmp_path, "d,ok,day,time\n12345678901234567.89,true,2024-02-29,2024-02-29 12:00:00\n")
    assert [{name: str(value) for name, value in row.items()} for row in events(path, columns)] == [
        {"time": "2024-02-29 12:00:00+00:00", "day": "2024-02-29", "ok": "True", "d": "12345678901234567.89"}
    ]


def test_empty_and_compressed_files(tmp_path: Path) -> None:
    assert events(written(tmp_path, "")) == []
    assert events(written(tmp_path, "time,type,x\n")) == []
    path = written(tmp_path, gzip.compress(b"x,type,time\n1,A,2\n"), "a.csv.gz")
    assert events(path) == [{"time": 2, "type": "A", "x": 1.0}]
    reading = FileReader("csv", COLUMNS, ("time",), True)
    (batch,) = reading.events("s3://far/a.csv.gz", path.read_bytes())
    assert batch.to_pylist() == [{"time": 2, "type": "A", "x": 1.0}]


def test_options_of_sparks_reader() -> None:
    dialect, files = dialect_of({"sep": ";", "header": "false", "maxFileAge": "1d"})
    assert dialect == Dialect(delimiter=";", header=False)
    assert files == {"maxFileAge": "1d"}
    with pytest.raises(OptionError, match="CSV has no option 'timestampFormat' on a live stream"):
        dialect_of({"timestampFormat": "dd.MM.yyyy"})


def test_a_header_is_where_the_options_say(tmp_path: Path) -> None:
    path = written(tmp_path, "1;A;2,5\n2;B;3\n")
    columns = pa.schema([("time", pa.int64()), ("type", pa.string()), ("x", pa.string())])
    found = events(path, columns, dialect=Dialect(delimiter=";", header=False))
    assert found == [{"time": 1, "type": "A", "x": "2,5"}, {"time": 2, "type": "B", "x": "3"}]


def test_parquet_of_any_unit_becomes_microseconds(tmp_path: Path) -> None:
    columns = pa.schema([("time", pa.timestamp("us")), ("type", pa.string()), ("x", pa.int64())])
    for unit, factor in (("ns", 1000), ("us", 1), ("ms", None)):
        times = pa.array([1_000_000 * factor if factor else 1000], pa.timestamp(unit))
        pq.write_table(pa.table({"type": ["A"], "time": times}), tmp_path / f"{unit}.parquet")
    found = [events(tmp_path / f"{unit}.parquet", columns) for unit in ("ns", "us", "ms")]
    assert [row["time"].isoformat() for (row,) in found] == ["1970-01-01T00:00:01"] * 3
    assert found[0][0]["x"] is None


def test_nanoseconds_that_are_not_whole_microseconds_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"time": pa.array([1001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"column 'time'.*would lose data"):
        events(tmp_path / "a.parquet", pa.schema([("time", pa.timestamp("us"))]))


@pytest.mark.parametrize("content", [b"PAR1 not really", b""])
def test_a_damaged_file_is_an_error_or_set_apart(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content, "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet"):
        events(path)
    (row,) = events(path, strict=False)
    assert row[FILE] == str(path)
