"""What a column of a text file is: all values of all files decide, in whatever order they come."""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.errors import DataError
from trendloom.io import files
from trendloom.io.read import read


def from_csv(folder: Path, *files: list[str]) -> pa.ChunkedArray:
    paths = []
    for number, values in enumerate(files):
        paths.append(folder / f"{number}.csv")
        paths[-1].write_text("x,n\n" + "".join(f"{value},0\n" for value in values))
    return read(paths)["x"]


def from_json(folder: Path, *files: list[str]) -> pa.ChunkedArray:
    paths = []
    for number, values in enumerate(files):
        paths.append(folder / f"{number}.jsonl")
        paths[-1].write_text("".join(f'{{"x": {value}, "n": 0}}\n' for value in values))
    return read(paths)["x"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20", "0"], pa.int64()),
        (["1", "", "3"], pa.int64()),
        ([" 1", "2 "], pa.int64()),
        (["-0", "9223372036854775807"], pa.int64()),
        (["7", "007"], pa.string()),
        (["+49301", "1"], pa.string()),
        (["49301123456789012345", "1"], pa.string()),
        (["9007199254740993", "0.5"], pa.string()),
        (["9007199254740992", "0.5"], pa.float64()),
        (["1.50", "1e3", ".5", "7"], pa.float64()),
        (["1234567890123456789.01"], pa.string()),
        (["0.1000000000000000055511151231257827"], pa.float64()),
        (["12e4567", "1e5"], pa.string()),
        (["0x10"], pa.string()),
        (["nan", "inf", "1"], pa.float64()),
        (["00.5"], pa.string()),
        (["true", "FALSE"], pa.bool_()),
        (["true", "1"], pa.string()),
        (["2024-01-01"], pa.date32()),
        (["2024-01-01", "2024-01-01 10:00"], pa.timestamp("us")),
        (["2024-01-01T10:00Z"], pa.timestamp("us", "UTC")),
        (["2024-01-01T10:00Z", "2024-01-01"], pa.timestamp("us", "UTC")),
        (["2024-01-01", "soon"], pa.string()),
        (["1", "x"], pa.string()),
        (["", ""], pa.null()),
    ],
)
def test_kinds_of_csv_columns(values: list[str], kind: pa.DataType, tmp_path: Path) -> None:
    found = from_csv(tmp_path, values)
    assert found.type == kind
    assert from_csv(tmp_path, values[::-1]).to_pylist()[::-1] == found.to_pylist() or "nan" in values
    if pa.types.is_string(kind):
        assert found.to_pylist() == values


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "null"], pa.int64()),
        (["12345678901234567890", "12345678901234567891", "-5"], pa.decimal128(38, 0)),
        (["1" * 39, "5"], pa.string()),
        (["9007199254740993", "1.5"], pa.string()),
        (["1234567890123456789.01", "1e300", "7"], pa.float64()),
        (["NaN", "1"], pa.float64()),
        (['"007"', '"7"'], pa.string()),
        (['"2024-01-01T10:00:00Z"'], pa.timestamp("us", "UTC")),
        (['"2024-01-01T10:00:00Z"', '"2024-01-01T11:00:00"'], pa.timestamp("us", "UTC")),
        (['"2024-01-01T10:00:00"'], pa.timestamp("us")),
        (['"2024-01-01"'], pa.date32()),
        (["true", "null"], pa.bool_()),
    ],
)
def test_kinds_of_json_members(values: list[str], kind: pa.DataType, tmp_path: Path) -> None:
    found = from_json(tmp_path, values)
    assert found.type == kind
    assert from_json(tmp_path, values[::-1]).type == kind
    assert from_json(tmp_path, *([value] for value in values)).type == kind
    if pa.types.is_decimal(kind):
        assert [int(value) for value in found.to_pylist()] == [int(value) for value in values]


def test_numbers_of_many_digits_are_told_apart(tmp_path: Path) -> None:
    phones = ["4930112345678901234501", "4930112345678901234502"]
    assert from_csv(tmp_path, phones).to_pylist() == phones
    assert len(from_json(tmp_path, phones).unique()) == 2


def test_a_value_late_in_the_file_changes_the_kind_of_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCKS", (1 << 12, 1 << 26))
    many = [str(number) for number in range(5000)]
    assert from_csv(tmp_path, many).type == pa.int64()
    assert from_csv(tmp_path, [*many, "0.5"]).type == pa.float64()
    assert from_csv(tmp_path, [*many, "abc"]).type == pa.string()
    assert from_json(tmp_path, [*many, "0.5"]).type == pa.float64()
    assert from_json(tmp_path, [*many, "1" * 25]).type == pa.decimal128(38, 0)
    assert from_csv(tmp_path, ["x" * 100_000, *many]).to_pylist()[0] == "x" * 100_000


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ([["1"], ["2.5"]], pa.float64()),
        ([["1"], [""]], pa.int64()),
        ([["7"], ["007"]], pa.string()),
        ([["9007199254740993"], ["0.5"]], pa.string()),
        ([["abc"], ["007"]], pa.string()),
        ([["2024-01-01"], ["2024-01-01 10:00"], ["2024-01-01T10:00+02:00"]], pa.timestamp("us", "UTC")),
    ],
)
def test_files_decide_together(files: list[list[str]], kind: pa.DataType, tmp_path: Path) -> None:
    assert from_csv(tmp_path, *files).type == kind
    assert from_csv(tmp_path, *files[::-1]).type == kind


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (["1"], ["x"], "is numbers in {0}/0.csv, but text in {0}/1.csv"),
        (["true"], ["1"], "is true or false in {0}/0.csv, but numbers in {0}/1.csv"),
        (["2024-01-01"], ["never"], "is times in {0}/0.csv, but text in {0}/1.csv"),
    ],
)
def test_files_that_contradict_each_other_are_named(
    one: list[str], other: list[str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as caught:
        from_csv(tmp_path, one, other)
    assert f"column 'x' {said.format(tmp_path)}" in caught.value.message
    assert 'schema="x string"' in str(caught.value.hint)


def test_csv_files_with_other_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,x\n1,2\n")
    (tmp_path / "b.csv").write_text("time\n1\n")
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert f"column 'x' is in {tmp_path}/a.csv, but missing in {tmp_path}/b.csv" in caught.value.message


def test_json_lines_may_leave_members_out_in_any_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"time": 1, "x": {"y": 1}}\n')
    (tmp_path / "b.jsonl").write_text('{"time": 2, "z": "b"}\n')
    (tmp_path / "c.jsonl").write_text("")
    assert read(tmp_path).to_pylist() == [{"time": 1, "x": {"y": 1}, "z": None}, {"time": 2, "x": None, "z": "b"}]


TOKENS = st.sampled_from(
    ["", "0", "7", "-3", "007", "+1", "1.5", "1e3", ".5", "9007199254740993", "123456789012345678901", "true", "x",
     "2024-01-01", "2024-01-01T10:00:00", "2024-01-01T10:00:00Z", "nan"]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(TOKENS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_cut_into_files_matters(values: list[str], chance: random.Random) -> None:
    shuffled = chance.sample(values, len(values))
    at = chance.randint(0, len(values))
    with tempfile.TemporaryDirectory() as folder:
        whole = from_csv(Path(folder), values)
        other = from_csv(Path(folder), shuffled)
        with contextlib.suppress(DataError):  # files that contradict each other
            parts = from_csv(Path(folder), values[:at], values[at:])
            assert parts.type == whole.type
            assert str(parts.to_pylist()) == str(whole.to_pylist())
    assert other.type == whole.type
    assert sorted(map(json.dumps, map(str, other.to_pylist()))) == sorted(map(json.dumps, map(str, whole.to_pylist())))
