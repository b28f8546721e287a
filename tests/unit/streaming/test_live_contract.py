"""The kernel contract is all that streaming needs: a kernel unknown to the engines streams as it is."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import pytest
from tests.unit.engines.toy_kernel import Toy
from tests.unit.streaming.live_streams import Row, events, streaming_query

import trendloom as tl
from trendloom.streaming import state as chunks
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import StreamingQuery

QUERY = "RETURN k, COUNT(*) AS total PATTERN A WHERE [k] GROUP BY k WITHIN 10 SLIDE 4"


def toy_flow() -> StreamingQuery:
    """The flow of a query, with the toy in place of its kernel."""
    found = streaming_query(QUERY)
    (measure,) = found.kernel.spec.measures
    return replace(found, kernel=Toy(found.kernel.emission.window, measure.name))


@pytest.mark.parametrize("seed", range(20))
def test_an_unknown_kernel_streams(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(chunks, "MOST_CHUNKS", chance.choice([1, 16]))
    rows: list[Row] = [("A", chance.randrange(60), chance.randrange(3), chance.randrange(9)) for _ in range(40)]
    rows.sort(key=lambda row: (row[1] or 0) + chance.random() * 5)
    live = Replay(pickle.loads(pickle.dumps(toy_flow())), delay=6, buckets=chance.choice([1, 2, 3]))
    found = [live.batch(events(rows[at : at + 5])) for at in range(0, len(rows), 5)] + [live.flush()]
    assert not live.late
    expected = tl.run(QUERY, events(rows), engine="local").to_pylist()
    mine = [row for table in found for row in table.to_pylist()]
    order = ("window_start", "k")
    assert sorted(mine, key=lambda row: [row[name] for name in order]) == expected
    assert live.kept == 0
