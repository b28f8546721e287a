"""Files with damage: small sound ones whose bytes are flipped, cut, inserted, moved; and what reading them may do.

`python -m tests.unit.io.damage 50000` tries that many of each kind by hand.
"""

from __future__ import annotations

import datetime
import io
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.errors import TrendloomError
from trendloom.io.events import prepare
from trendloom.io.read import read
from trendloom.io.write import json_lines

CSV = [
    b'time,type,key,note\n1,A,007,"a, b"\n2,B,7,\n3,A,12345678901234567890,"two\nlines"\n4,B,-1.5e3,""\n',
    b"time,type,when\r\n1,A,2024-01-01T10:00:00Z\r\n2,B,2024-01-02 11:00:00.5\r\n3,A,2024-01-03\r\n",
    "\ufefftime\ttype\tname\n1\tA\tÄrger\n2\tB\t漢字\n".replace("\t", ",").encode(),
]
JSON_LINES = [
    b'{"time": 1, "type": "A", "x": 1.5, "y": [1, 2]}\n{"time": 2, "type": "B", "x": null, "y": []}\n',
    b'{"time": "2024-01-01T10:00:00Z", "type": "A", "id": 12345678901234567890}\n{"time": "2024-01-02", "type": "B"}\n',
    '{"time": 1, "type": "A", "s": "\\ud83d\\ude00 é", "o": {"b": true}}\n\n{"time": 2, "type": "B"}\n'.encode(),
]


def _parquet(**options: object) -> bytes:
    moment = datetime.datetime(2024, 1, 1)
    table = pa.table(
        {
            "time": [1, 2, 3, 4] * 5,
            "type": ["A", "B", "A", "C"] * 5,
            "x": [0.5, None, 2.0, 3.0] * 5,
            "when": [moment, moment, None, moment] * 5,
            "tag": pa.array(["u", "v", None, "u"] * 5).dictionary_encode(),
            "list": [[1], [], None, [2, 3]] * 5,
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


PARQUET = [
    _parquet(),
    _parquet(compression="none", use_dictionary=False),
    _parquet(compression="zstd", row_group_size=7),
]
SEEDS = {".csv": CSV, ".jsonl": JSON_LINES, ".parquet": PARQUET}


# ------------------------------------------------------------------------------------------------------- damage


def _flip(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 3)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def _overwrite(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(len(content))] = chance.choice(b'\x00\xff,"\n\r{}[]:0-+e\\\xc3\x80\x7f')


def _cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def _drop(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content))
    del content[at : at + chance.randint(1, 8)]


def _insert(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content) + 1)
    content[at:at] = chance.choice([b'"', b"\n", b",", b"\0", b"\xff\xfe", b"NaN", b"1e999", b"9" * 40, b"{", b'""'])


def _repeat(content: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(content))
    content[at:at] = content[at : at + chance.randint(1, 30)]


def _swap_lines(content: bytearray, chance: random.Random) -> None:
    lines = content.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    content[:] = b"\n".join(lines)


WAYS: list[Callable[[bytearray, random.Random], None]] = [
    _flip, _overwrite, _cut, _drop, _insert, _repeat, _swap_lines,
]  # fmt: skip


def damaged(ending: str, number: int) -> bytes:
    """The damaged file of that number: always the same bytes."""
    chance = random.Random(f"{ending} {number}")
    content = bytearray(chance.choice(SEEDS[ending]))
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if content:
            chance.choice(WAYS)(content, chance)
    return bytes(content)


def outcome(path: Path) -> str | None:
    """Our error for the file, None if it was read; everything else is raised."""
    try:
        events = prepare(read(path))
        for batch in events.table.to_batches():
            json_lines(batch)
    except TrendloomError as error:
        if not error.message.strip():
            raise ValueError("an error without a word") from error
        return error.message
    return None


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for ending in SEEDS:
            path, read_well, problems = Path(folder) / f"e{ending}", 0, 0
            for number in range(count):
                path.write_bytes(damaged(ending, number))
                try:
                    read_well += outcome(path) is None
                except Exception as error:
                    problems += 1
                    print(f"{ending} {number}: {type(error).__name__}: {error}"[:300])
            print(f"{ending}: {count:,} files, {read_well:,} read, {problems} problems", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
