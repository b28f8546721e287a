"""Which files are meant by a path, a glob, a folder or a URI; and what is said where none is."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
import zstandard

from trendloom.errors import DataError
from trendloom.io.files import find_files
from trendloom.io.read import read


def names(*places: str | Path) -> list[str]:
    return [Path(file.path).name for file in find_files([str(place) for place in places]).files]


def csv(path: Path, *rows: str, header: str = "time,type") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def days(tmp_path: Path) -> Path:
    for number in (1, 2, 3):
        csv(tmp_path / "days" / f"{number}.csv", f"{number},A")
    csv(tmp_path / "days" / "old" / "0.csv", "0,B")
    csv(tmp_path / "days" / "_unfinished.csv", "9,Z")
    csv(tmp_path / "days" / ".hidden" / "9.csv", "9,Z")
    return tmp_path / "days"


@pytest.mark.parametrize(
    ("places", "found"),
    [
        (["1.csv", "3.csv"], ["1.csv", "3.csv"]),
        (["3.csv", "1.csv", "3.csv"], ["3.csv", "1.csv"]),
        (["*.csv"], ["1.csv", "2.csv", "3.csv"]),
        (["[12].csv"], ["1.csv", "2.csv"]),
        (["?.csv", "old"], ["1.csv", "2.csv", "3.csv", "0.csv"]),
        (["**/*.csv"], ["1.csv", "2.csv", "3.csv", "0.csv"]),
        (["*/*.csv"], ["0.csv"]),
        (["ol*"], ["0.csv"]),
        ([""], ["1.csv", "2.csv", "3.csv", "0.csv"]),
        (["_unfinished.csv"], ["_unfinished.csv"]),
    ],
)
def test_globs_and_folders(places: list[str], found: list[str], days: Path) -> None:
    assert names(*(days / place for place in places)) == found


def test_a_file_whose_name_looks_like_a_glob_is_that_file(days: Path) -> None:
    csv(days / "[12].csv", "7,A")
    assert names(days / "[12].csv") == ["[12].csv"]


def test_relative_paths_the_home_folder_and_uris_of_files(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(days.parent)
    monkeypatch.setenv("HOME", str(days))
    assert find_files(["days/*.csv"]).files[0].name == "days/1.csv"
    assert names("~/1.csv") == ["1.csv"]
    csv(days / "a b.csv", "1,A")
    assert names(f"file://{days}/a%20b.csv", f"file:{days}/2.csv", f"file://{days}/?.csv") == [
        "a b.csv", "2.csv", "1.csv", "3.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress), (".bz2", bz2.compress)]
)
def test_compressed_text_and_tabs(ending: str, pack: object, tmp_path: Path) -> None:
    (tmp_path / f"e.csv{ending}").write_bytes(pack(b"time,type\n1,A\n"))  # type: ignore[operator]
    (tmp_path / f"e.jsonl{ending}").write_bytes(pack(b'{"time": 1, "type": "A"}\n'))  # type: ignore[operator]
    (tmp_path / f"e.tsv{ending}").write_bytes(pack(b"time\ttype\n1\tA\n"))  # type: ignore[operator]
    for kind in ("csv", "jsonl", "tsv"):
        assert read(tmp_path / f"e.{kind}{ending}").to_pylist() == [{"time": 1, "type": "A"}]


def test_a_compressed_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"time,type\n" + b"1,A\n" * 1000)[:-9])
    with pytest.raises(DataError, match=r"e.csv.gz cannot be read: Truncated"):
        read(tmp_path / "e.csv.gz")


def test_parquet_without_an_ending_is_known_by_its_beginning(tmp_path: Path) -> None:
    pq.write_table(pa.table({"time": [1]}), tmp_path / "000000_0")
    assert read(tmp_path).to_pylist() == [{"time": 1}]


@pytest.mark.parametrize(
    ("place", "said", "hint"),
    [
        ("*.parquet", "no file matches", "in {} there is .hidden, 1.csv, 2.csv"),
        ("none/*.csv", "no file matches", "there is no folder {}/none"),
        ("1.parquet", "does not exist", "there is 1.csv in that folder"),
        ("none/1.csv", "does not exist", "there is no folder {}/none either"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(place: str, said: str, hint: str, days: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(days / place)
    assert said in caught.value.message
    assert f"{days}/{place}" in caught.value.message
    assert hint.format(days) in str(caught.value.hint)


def test_files_of_several_kinds_are_named(days: Path) -> None:
    (days / "4.jsonl").write_text('{"time": 4, "type": "A"}\n')
    with pytest.raises(DataError, match=r"1.csv is CSV, but .*4.jsonl is JSON lines") as caught:
        read(days)
    assert "*.csv" in str(caught.value.hint)
    (days / "notes.txt").write_text("of no use")
    with pytest.raises(DataError, match=r"notes.txt: cannot read files that end in '.txt'"):
        read(days)


@pytest.mark.parametrize("place", ["https://example.org/e.csv", "ftp://x/e.parquet", "nosuch://x/e.parquet"])
def test_schemes_that_are_not_read(place: str) -> None:
    with pytest.raises(DataError) as caught:
        read(place)
    assert caught.value.message.startswith(f"{place}: ")
    assert "file://, s3://, gs://, hdfs://" in str(caught.value.hint)


class Bucket:
    """Stands for a bucket on another machine: a folder of this one."""

    def __init__(self, folder: Path) -> None:
        self.system = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        self.asked: list[str] = []

    def from_uri(self, uri: str) -> tuple[fs.FileSystem, str]:
        self.asked.append(uri)
        return self.system, uri.partition("://")[2].partition("?")[0]


def test_uris_go_through_arrows_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        csv(tmp_path / "bucket" / f"day={number}" / "e.csv", f"{number},A")
    bucket = Bucket(tmp_path)
    monkeypatch.setattr("trendloom.io.files.fs.FileSystem", bucket)
    assert sorted(read("s3://bucket/")["day"].to_pylist()) == [1, 2]
    found = find_files(["s3a://bucket/day=*/e.csv?region=x"])
    assert [file.name for file in found.files] == ["s3a://bucket/day=1/e.csv", "s3a://bucket/day=2/e.csv"]
    assert bucket.asked == ["s3://bucket", "s3://bucket?region=x"]
    with pytest.raises(DataError, match=r"^s3://bucket/none.csv does not exist"):
        read("s3://bucket/none.csv")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_folders_named_by_keys_are_columns(kind: str, tmp_path: Path) -> None:
    for shop, till in (("007", "1"), ("7", "2"), ("a%20b", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"shop={shop}" / f"till={till}"
        folder.mkdir(parents=True)
        if kind == "parquet":
            pq.write_table(pa.table({"time": [1, 2]}), folder / "e.parquet")
        else:
            (folder / f"e.{kind}").write_text("time\n1\n2\n" if kind == "csv" else '{"time": 1}\n{"time": 2}\n')
    table = read(tmp_path)
    assert table.column_names == ["time", "shop", "till"]
    assert sorted(set(zip(table["shop"].to_pylist(), table["till"].to_pylist(), strict=True)), key=str) == [
        ("007", 1), ("7", 2), ("a b", None),
    ]  # fmt: skip
    assert read(tmp_path, schema="till string")["till"].drop_null().unique().to_pylist() == ["1", "2"]
    assert read(str(tmp_path / "shop=*" / "till=1")).column_names == ["time", "shop", "till"]
    assert read(tmp_path / "shop=007").column_names == ["time", "till"]


def test_files_of_several_folders_are_one_table(tmp_path: Path) -> None:
    one = csv(tmp_path / "a" / "1.csv", "1,A", header="time,type")
    two = csv(tmp_path / "b" / "2.csv", "B,2", header="type,time")
    both: Sequence[Path] = [one, two]
    assert read(both).to_pylist() == [{"time": 1, "type": "A"}, {"time": 2, "type": "B"}]
    assert read(tuple(map(str, both))).equals(read(both))
