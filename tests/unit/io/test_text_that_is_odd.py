"""Text files as the world writes them: marks, line ends, encodings, quotes, rows that are too short."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendloom.errors import DataError
from trendloom.io.read import read

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv", b"\xef\xbb\xbfa,b\n1,x\n2,y\n"),
        ("e.csv", b"a,b\r\n1,x\r\n2,y\r\n"),
        ("e.csv", b"\n\na,b\n\n1,x\n2,y"),
        ("e.csv", b'"a","b"\n"1","x"\n2,y\n\n'),
        ("e.tsv", b"a\tb\n1\tx\n2\ty\n"),
        ("e.jsonl", b'\xef\xbb\xbf{"a": 1, "b": "x"}\r\n\r\n{"b": "y", "a": 2}'),
        ("e.jsonl", b'{"a": 1, "b": "x"} {"a": 2, "b": "y"}\n'),
    ],
)
def test_marks_and_line_ends(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert read(tmp_path / name).to_pylist() == ROWS


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("e.csv", "a,b\n1,x\n".encode("utf-16"), "not text in UTF-8, but in UTF-16"),
        ("e.csv", "a,b\n1,x\n".encode("utf-16-le"), "not text in UTF-8, but in UTF-16"),
        ("e.jsonl", '{"a": 1}\n'.encode("utf-16"), "not text in UTF-8, but in UTF-16"),
        ("e.csv", "a,b\n1,x\n2,é\n".encode("latin1"), "is not text in UTF-8: byte 0xe9 in line 3"),
        ("e.csv", "é,b\n1,x\n".encode("latin1"), "is not text in UTF-8: byte 0xe9 in line 1"),
        ("e.jsonl", '{"a": 1}\n{"a": "é"}\n'.encode("latin1"), "is not text in UTF-8: byte 0xe9 in line 2"),
        ("e.jsonl", '{"a": "x"}\n{"a": "é"}\n'.encode("latin1"), "is not text in UTF-8: byte 0xe9 in line 2"),
        ("e.jsonl", '{"a": {"é": 1}}\n'.encode("latin1"), "is not text in UTF-8: byte 0xe9 in line 1"),
        ("e.csv", b"a,b\n1,x\n2,\0\0\n", "a zero byte in row 2, column 'b'"),
        ("e.csv", b"a,b\n1,x\n2\n3,y,z\n", "row 2 has 1 field, but the header has 2 fields: '2' (and 1 more)"),
        ("e.csv", b'a,b\n1,"x\n2,y\n3,z\n', "the row that begins in line 2 has a quote that is not closed"),
        ("e.csv", b'a,b\n1,"x\n2,"y"\n3,z\n', "the row that begins in line 2 has a quote that is not closed"),
        ("e.csv", b"\n\n", "is empty"),
        ("e.csv", b"a,b,a\n1,2,3\n", "more than one column 'a'"),
        ("e.jsonl", b'{"a": 1, "a": 2}\n', "member 'a' stands twice in line 1"),
        ("e.jsonl", b'{"a": 1}\n{"a": 2\n', "Expecting ',' delimiter in line 2, column 8"),
        ("e.jsonl", b'{"a": "\\ud800"}\n', "'a' in line 1 holds half of a character"),
        ("e.jsonl", b'{"a": ' + b"[" * 100_000, "line 1 is nested too deeply"),
        ("e.jsonl", b"{}\n{}\n", "holds objects without any member"),
        ("e.jsonl", b'{"a": [1, "x"]}\n', "the lists or objects of 'a' differ"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.message.startswith(str(path))
    assert said in caught.value.message
    assert caught.value.hint


def test_quotes_inside_fields_are_not_damage(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text('a,b\n1,"he said ""no""\nand left"\n2,6" pipe\n3,"the end\n"\n')
    assert read(tmp_path / "e.csv")["b"].to_pylist() == ['he said "no"\nand left', '6" pipe', "the end\n"]


def test_a_row_longer_than_a_block_is_read(tmp_path: Path) -> None:
    long = "x" * 3_000_000
    (tmp_path / "e.csv").write_text(f"a,b\n1,{long}\n")
    (tmp_path / "e.jsonl").write_text(f'{{"a": 1, "b": "{long}"}}\n')
    for name in ("e.csv", "e.jsonl"):
        assert read(tmp_path / name).to_pylist() == [{"a": 1, "b": long}]
