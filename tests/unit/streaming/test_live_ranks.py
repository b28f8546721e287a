"""Ranks on a live stream: when they come, who ranks partitions together, boards that change, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.streaming.live_streams import Row, events, stream, streaming_query

import trendloom as tl
from trendloom.errors import PlanError
from trendloom.runtime.result_builder import BOUND

PAIRS = "RETURN a.x, b.x AS y PATTERN SEQ(A a, B b) WHERE [k] RANK BY a.x + b.x DESC"
BY_KEY = f"{PAIRS} LIMIT 2 WITHIN 10 SLIDE 5"
OVERALL = f"{PAIRS} LIMIT 2 OVERALL WITHIN 10 SLIDE 5"


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def random_batches(seed: int) -> list[list[Row]]:
    draw = random.Random(seed)
    return [
        [(draw.choice("AB"), 3 * number + draw.randrange(3), draw.randrange(3), draw.randrange(40)) for _ in range(5)]
        for number in range(8)
    ]


def test_ranks_come_when_their_window_has_ended() -> None:
    live = stream(f"{PAIRS} LIMIT 1 WITHIN 10 SLIDE 10")
    assert not len(live.batch(events([("A", 1, 1, 1), ("B", 2, 1, 1), ("B", 9, 1, 5), ("A", 9, 2, 7)])))
    assert not len(live.batch(events([("A", 10, 3, 0)])))
    found = live.batch(events([])).to_pylist()
    assert [(row["k"], row["a.x"], row["y"], row["rank"], row["score"]) for row in found] == [(1, 1, 5, 1, 6)]


def test_partitions_of_different_buckets_are_ranked_together() -> None:
    live = stream(f"{PAIRS} LIMIT 2 OVERALL WITHIN 10 SLIDE 10", buckets=3)
    rows: list[Row] = [row for k in range(4) for row in (("A", 1, k, k), ("B", 2 + k, k, 1))]
    assert BOUND not in live.batch(events(rows)).column_names
    found = live.flush().to_pylist()
    assert [(row["rank"], row["k"], row["score"]) for row in found] == [(1, 3, 4), (2, 2, 3)]


@pytest.mark.parametrize("seed", range(5))
def test_a_board_ends_as_the_ranks_of_the_batch(seed: int) -> None:
    """A row replaces the one before of its window, partition and rank."""
    live, board = stream(BY_KEY, early=True, delay=6), dict[tuple[Any, ...], dict[str, Any]]()
    batches = random_batches(seed)
    changes = 0
    for batch in batches:
        for row in live.batch(events(batch)).to_pylist():
            place = (row["window_start"], row["k"], row["rank"])
            changes += place in board and board[place] != row
            board[place] = row
    expected = tl.run(BY_KEY, events([row for batch in batches for row in batch]), engine="local")
    assert board == {(row["window_start"], row["k"], row["rank"]): row for row in expected.to_pylist()}
    assert changes


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("PATTERN A a RANK BY a.x LIMIT 2 WITHIN 10", "no rank would ever be certain"),
        ("PATTERN A a RANK BY a.x LIMIT 2", "without WITHIN"),
    ],
)
def test_ranks_that_would_never_be_certain_are_refused(query: str, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        streaming_query(query)
    assert "SLIDE" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (OVERALL, "partitions are ranked together only when a window ends"),
        ("PATTERN SEQ(A a, NOT C, B b) RANK BY a.x LIMIT 2 WITHIN 10 SLIDE 5", "events that come late can undo"),
        ("PATTERN A a SEMANTICS contiguous RANK BY a.x LIMIT 2 WITHIN 10 SLIDE 5", "events that come late can change"),
    ],
)
def test_boards_that_might_lose_rows_are_refused(query: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        streaming_query(query, early=True)
