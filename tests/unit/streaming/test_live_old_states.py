"""States that earlier versions wrote go on: `old_states/` holds one per format and kind of kernel, as it was stored.

`python -m tests.unit.streaming.test_live_old_states` writes those of the format of today; old ones are never rewritten.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.unit.streaming.live_streams import Row, events, streaming_query

import trendloom as tl
from trendloom.streaming.state import FORMAT, Kept
from trendloom.streaming.step import QueryStep

FOLDER = Path(__file__).parent / "old_states"
QUERIES = {
    "runs": "PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match WHERE [k] WITHIN 40",
    "matches": "PATTERN SEQ(A a, NOT C, B b) WHERE [k] WITHIN 15 SLIDE 5",
    "matrices": "RETURN k, COUNT(*), SUM(A.x), MAX(B.x) PATTERN SEQ(A+, B) WHERE [k] GROUP BY k WITHIN 20 SLIDE 5",
    "events": "RETURN k, COUNT(*) PATTERN A+ WHERE [k] AND A.x < NEXT(A).x GROUP BY k WITHIN 20 SLIDE 5",
}
BEFORE: list[Row] = [("ABCAB"[t % 5], t, t % 3, t * 7 % 10) for t in range(30)]
AFTER: list[Row] = [("ABCAB"[t % 5], t, t % 3, t * 7 % 10) for t in range(30, 60)]
STEPS = ((None, BEFORE[:12]), (8, BEFORE[12:22]), (17, BEFORE[22:]))


def stepped(query: str) -> tuple[Kept, list[dict[str, object]]]:
    memory, found = Kept(), []
    for watermark, rows in STEPS:
        for batch in QueryStep(streaming_query(query), memory, watermark).rows(events(rows)):
            found += batch.to_pylist()
    return memory, found


def write_states() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, query in QUERIES.items():
        memory, found = stepped(query)
        assert memory.head is not None
        chunks = {number: base64.b64encode(content).decode() for number, content in memory.chunks.items()}
        told = {"query": query, "index": memory.head.decode(), "chunks": chunks, "rows": len(found)}
        (FOLDER / f"format-{FORMAT}-{name}.json").write_text(json.dumps(told, indent=1) + "\n")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_stored_state_goes_on(path: Path) -> None:
    told = json.loads(path.read_text())
    memory = Kept()
    memory.set_index(told["index"].encode())
    memory.chunks = {int(number): base64.b64decode(content) for number, content in told["chunks"].items()}
    found = []
    for watermark, rows in ((27, AFTER), (58, []), (10_000, [])):
        for batch in QueryStep(streaming_query(told["query"]), memory, watermark).rows(events(rows)):
            found += batch.to_pylist()
    expected = tl.run(told["query"], events(BEFORE + AFTER), engine="local")
    assert len(found) + told["rows"] == len(expected)
    seen = [str(row) for row in expected.to_pylist()]
    assert all(str(row).replace("Decimal('", "").replace("')", "") in seen for row in found)


def test_there_is_a_state_of_every_format_and_kind() -> None:
    kept = {path.stem for path in FOLDER.glob("*.json")}
    assert kept >= {f"format-{number}-{name}" for number in range(1, FORMAT + 1) for name in QUERIES}


if __name__ == "__main__":
    write_states()
