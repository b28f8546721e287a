"""Reading: every kind of source gives the same table, and every broken one an error that names it."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from trendloom.errors import DataError
from trendloom.io.read import read

ROWS = [
    {"time": 1, "type": "A", "value": 1.5, "who": "x"},
    {"time": 2, "type": "B", "value": None, "who": "y"},
    {"time": 3, "type": "A", "value": 2.0, "who": None},
]
TABLE = pa.Table.from_pylist(ROWS)


def saved(folder: Path, ending: str) -> Path:
    path = folder / f"events{ending}"
    if ending == ".csv":
        path.write_text("time,type,value,who\n1,A,1.5,x\n2,B,,y\n3,A,2.0,\n")
    elif ending == ".parquet":
        pq.write_table(TABLE, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".ndjson", ".json", ".parquet"])
def test_every_format_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    table = read(saved(tmp_path, ending))
    assert table.to_pylist() == ROWS
    assert table.schema.field("time").type == pa.int64()
    assert table.schema.field("value").type == pa.float64()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_columns_are_pruned_and_unknown_ones_ignored(ending: str, tmp_path: Path) -> None:
    assert read(str(saved(tmp_path, ending)), columns=["who", "time", "nowhere"]).column_names == ["time", "who"]


def test_a_folder_of_parquet_is_read_as_one_table(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 1), tmp_path / "a.parquet")
    pq.write_table(TABLE.slice(1).select(["who", "value", "type", "time"]), tmp_path / "b.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert sorted(read(tmp_path).to_pylist(), key=lambda row: row["time"]) == ROWS
    assert read(tmp_path, columns=["type"]).column_names == ["type"]


def test_a_folder_partitioned_by_a_column_has_that_column(tmp_path: Path) -> None:
    for name in ("A", "B"):
        (tmp_path / f"type={name}").mkdir()
        pq.write_table(pa.table({"time": [1]}), tmp_path / f"type={name}" / "part.parquet")
    assert sorted(read(tmp_path)["type"].to_pylist()) == ["A", "B"]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (pa.table({"time": [1], "x": ["a"]}), "column 'x' is int64 in {0}/a.parquet, but string in {0}/b.parquet"),
        (pa.table({"time": [1]}), "column 'x' is int64 in {0}/a.parquet, but missing in {0}/b.parquet"),
        (
            pa.table({"time": [1], "x": [1], "y": [1]}),
            "column 'y' is missing in {0}/a.parquet, but int64 in {0}/b.parquet",
        ),
    ],
)
def test_files_of_a_folder_must_agree(other: pa.Table, difference: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"time": [1], "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert difference.format(tmp_path) in caught.value.message


class StreamOnly:
    """A frame of some other library: it offers the Arrow stream and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.to_pandas(),
        polars.from_arrow(TABLE),
        StreamOnly(),
    ],
    ids=["table", "batch", "reader", "pandas", "polars", "stream"],
)
def test_every_frame_gives_the_same_rows(source: object) -> None:
    assert read(source).to_pylist() == ROWS


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    assert read(pandas.DataFrame({"time": [1]}, index=["left"])).column_names == ["time"]


def test_times_are_recognised_in_text_formats(tmp_path: Path) -> None:
    moment = datetime.datetime(2013, 7, 4, 10, 30, 0, 500_000)
    (tmp_path / "e.csv").write_text("plain,zoned,day\n2013-07-04 10:30:00.5,2013-07-04T12:30:00.5+02:00,2013-07-04\n")
    (tmp_path / "e.jsonl").write_text(
        '{"plain": "2013-07-04T10:30:00.5", "zoned": "2013-07-04T12:30:00.5+02:00", "day": "not 2013-07-04"}\n'
    )
    for name in ("e.csv", "e.jsonl"):
        row = read(tmp_path / name).to_pylist()[0]
        assert row["plain"] == moment
        assert row["zoned"] == moment.replace(tzinfo=datetime.UTC)
    assert read(tmp_path / "e.csv")["day"].type == pa.date32()
    assert read(tmp_path / "e.jsonl")["day"].type == pa.string()


def test_text_that_only_begins_like_a_time_stays_text(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"x": "2013-07-04T10:30:00Z"}\n{"x": "2013-07-04 was a day"}\n')
    assert read(tmp_path / "e.jsonl")["x"].to_pylist()[1] == "2013-07-04 was a day"


def test_csv_tells_null_from_empty_text_and_keeps_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text('time,a,b\n1,,NA\n2,"","two\nlines"\n')
    assert read(tmp_path / "e.csv").to_pylist() == [
        {"time": 1, "a": None, "b": "NA"},
        {"time": 2, "a": "", "b": "two\nlines"},
    ]


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_json_lines_without_a_line_have_no_rows(content: str, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(content)
    assert read(tmp_path / "e.jsonl").num_rows == 0


def test_csv_with_only_names_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time,type\n")
    table = read(tmp_path / "e.csv")
    assert (table.num_rows, table.column_names) == (0, ["time", "type"])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("e.csv", b"", "is empty"),
        ("e.csv", b"a,b\n1,2,3\n", "row 1 has 3 fields, but the header has 2 fields: '1,2,3'"),
        ("e.csv", b"a,b,a\n1,2,3\n", "more than one column 'a'"),
        ("e.jsonl", b"not json\n", "Expecting value in line 1, column 1"),
        ("e.jsonl", b'{"a": 1}\n{"a": "x"}\n', "'a' is a number in line 1, but text in line 2"),
        ("e.json", b'[{"a": 1}]', "line 1 is not an object"),
        ("e.parquet", b"", "cannot be read"),
        ("e.parquet", b"PAR1 but not really", "cannot be read"),
        ("e.xlsx", b"x", "files that end in '.xlsx'"),
        ("events", b"x", "files without an ending"),
    ],
)
def test_a_broken_file_is_named_with_a_way_out(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(path) in caught.value.message
    assert said in caught.value.message
    assert caught.value.hint


def test_a_broken_file_in_a_folder_is_named(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"garbage")
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert "b.parquet" in caught.value.message


def test_a_missing_file_hints_at_its_neighbours(tmp_path: Path) -> None:
    saved(tmp_path, ".parquet")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "events.csv")
    assert "does not exist" in caught.value.message
    assert "events.parquet" in str(caught.value.hint)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no files of events"):
        read(tmp_path)


def test_parquet_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "e.parquet")
    with pytest.raises(DataError, match="more than one column 'a'"):
        read(tmp_path / "e.parquet")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "nothing"),
        ([1, 2], "a list"),
        (pandas.DataFrame([[1, 2]]), "must be text, not 0"),
        (pandas.DataFrame({"a": [1, "x"]}), "pandas frame cannot become"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column 'a'"),
        (polars.LazyFrame({"a": [1]}), "polars"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "more than one column 'a'"),
    ],
    ids=["none", "list", "numbers-as-names", "mixed-values", "pandas-twice", "lazy", "table-twice"],
)
def test_what_is_no_table_is_refused(source: object, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(source)
    assert said in str(caught.value)
