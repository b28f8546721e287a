"""Ranked queries over purchases, stocks and taxi trips find what a plain program finds that sorts all matches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from tests.docs.test_examples import EXAMPLES, program

import trendloom as tl

RANKING = (EXAMPLES / "ranking.tql").read_text()
PURCHASES, MOVES, TRIPS = program("card_purchases"), program("stock_moves"), program("taxi_trips")
HOUR, MINUTE, DAY = 3600, 60, timedelta(days=1)

Row = dict[str, Any]
Match = tuple[Row, ...]
"""The events of a match in order of time."""

pytestmark = pytest.mark.filterwarnings("ignore:.*have the same time as another")


def found(name: str, events: pa.Table, engine: str = "local") -> list[Row]:
    rows: list[Row] = tl.run(RANKING, events, query=name, engine=engine).to_pylist()
    return rows


def shown(rows: Iterable[Row], column: str) -> list[tuple[Any, ...]]:
    """Window, rank, score, and this column of the events of each row."""
    return [
        (seconds(row.get("window_start")), row["rank"], row["score"], tuple(event[column] for event in row["events"]))
        for row in rows
    ]


def seconds(time: Any) -> Any:
    """Timestamps as seconds since 1970, other times as they are."""
    return int(time.replace(tzinfo=UTC).timestamp()) if isinstance(time, datetime) else time


def ranked(board: Any, matches: Iterable[tuple[float, Match]], column: str, most: int = 10) -> list[tuple[Any, ...]]:
    """The best of all matches with their scores: highest first, equal ones by the times of their events."""
    best = sorted(matches, key=lambda pair: (-pair[0], [event["time"] for event in pair[1]]))[:most]
    return [
        (board, rank, pytest.approx(score, rel=1e-12), tuple(event[column] for event in match))
        for rank, (score, match) in enumerate(best, 1)
    ]


def rising(*events: Row) -> bool:
    return all(one["time"] < other["time"] for one, other in pairwise(events))


def in_windows(events: pa.Table, within: int, slide: int, key: str) -> Iterator[tuple[int, list[dict[str, list[Row]]]]]:
    """Each window that holds an event: its start, and for each key the events by type."""
    rows = [row | {"time": seconds(row["time"])} for row in events.to_pylist()]
    first, last = rows[0]["time"], rows[-1]["time"]
    for start in range((first - within) // slide * slide, last + 1, slide):
        of_key: dict[Any, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            if start <= row["time"] < start + within:
                of_key[row[key]][row["type"]].append(row)
        if of_key:
            yield start, list(of_key.values())


def by_time(*events: Row) -> Match:
    return tuple(sorted(events, key=lambda event: event["time"]))


# ---------------------------------------------------------------------------------------------------- purchases


@pytest.fixture(scope="module")
def purchases() -> pa.Table:
    events: pa.Table = PURCHASES.card_purchases()
    return events


def three_brands(of: dict[str, list[Row]]) -> Iterator[tuple[float, Match]]:
    for a, b, c in product(of["BrandA"], of["BrandB"], of["BrandC"]):
        if rising(a, b, c):
            yield a["exp"] + b["exp"] + c["exp"] - (c["time"] - a["time"]) / 300, (a, b, c)


def big_spenders(of: dict[str, list[Row]], start: int) -> Iterator[tuple[float, Match]]:
    for score, match in three_brands(of):
        for d, e in product(of["BrandD"], of["BrandE"]):
            if rising(d, e) and d["time"] >= start + 2 * HOUR:
                yield score + d["exp"] + e["exp"], by_time(*match, d, e)


def test_purchases_are_always_the_same_and_no_two_at_one_time(purchases: pa.Table) -> None:
    assert PURCHASES.card_purchases().equals(purchases)
    assert len(set(purchases["time"].to_pylist())) == len(purchases) == PURCHASES.PURCHASES


def test_the_best_of_three_brands_are_those_of_a_plain_program(purchases: pa.Table) -> None:
    wanted = []
    for start, cards in in_windows(purchases, 10 * HOUR, 5 * HOUR, "ccid"):
        wanted += ranked(start, (match for of in cards for match in three_brands(of)), "exp")
    assert shown(found("three_brands", purchases), "exp") == wanted
    assert len(wanted) > 50


def test_big_spenders_are_those_of_a_plain_program(purchases: pa.Table) -> None:
    wanted = []
    for start, cards in in_windows(purchases, 10 * HOUR, 5 * HOUR, "ccid"):
        wanted += ranked(start, (match for of in cards for match in big_spenders(of, start)), "exp")
    assert shown(found("big_spenders", purchases), "exp") == wanted
    assert len(wanted) > 50


# ------------------------------------------------------------------------------------------------------- stocks


def buys_and_sells(of: dict[str, list[Row]], start: int) -> Iterator[tuple[float, Match]]:
    falls, rises = ([row for row in of[type] if row["time"] >= start + 5 * MINUTE] for type in ("Fall", "Rise"))
    for (b1, b2), (s1, s2) in product(combinations(falls, 2), combinations(rises, 2)):
        if b2["time"] < s1["time"]:
            yield s1["price"] + s2["price"] - b1["price"] - b2["price"], (b1, b2, s1, s2)


def test_the_cheapest_buys_with_the_dearest_sells_are_those_of_a_plain_program() -> None:
    moves = MOVES.stock_moves()
    wanted = []
    for start, tickers in in_windows(moves, 15 * MINUTE, 15 * MINUTE, "ticker"):
        wanted += ranked(start, (match for of in tickers for match in buys_and_sells(of, start)), "price")
    assert shown(found("buy_and_sell", moves), "price") == wanted
    assert len(wanted) >= 40


# --------------------------------------------------------------------------------------------------------- taxis


@pytest.fixture(scope="module")
def trips() -> pa.Table:
    events: pa.Table = TRIPS.made_up_trips()
    return events


def rides_in_a_row(events: pa.Table) -> Iterator[tuple[float, Match]]:
    """Rides that begin within an hour where another ended, and end in this hour."""
    rows = events.to_pylist()
    end_of = {row["trip"]: row for row in rows if row["type"] == "Dropoff"}
    left: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["type"] == "Dropoff":
            left[row["zone"]].append(row)
            continue
        end = end_of.get(row["trip"], row)
        for before in left[row["zone"]]:
            if rising(before, row, end) and end["time"] - before["time"] < timedelta(hours=1):
                yield before["total"] + end["total"], (before, row, end)


def test_rides_in_a_row_are_those_of_a_plain_program(trips: pa.Table) -> None:
    week = trips.slice(0, 4500)
    assert shown(found("rides_in_a_row", week), "trip") == ranked(None, rides_in_a_row(week), "trip")


def growing(tips: list[Row]) -> Iterator[Match]:
    """All choices of later and higher tips."""
    chains: list[Match] = []
    for tip in tips:
        longer = [(*chain, tip) for chain in chains if rising(chain[-1], tip) and tip["tip"] > chain[-1]["tip"]]
        chains += [*longer, (tip,)]
        yield from [*longer, (tip,)]


def test_growing_tips_are_those_of_a_plain_program(trips: pa.Table) -> None:
    tips: dict[datetime, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in trips.to_pylist():
        if row["type"] == "Dropoff":
            tips[row["time"].replace(hour=0, minute=0, second=0)][row["zone"]].append(row)
    wanted = []
    for day, of_zone in sorted(tips.items()):
        chains = (chain for of in of_zone.values() for chain in growing(of))
        best = ranked(day, ((sum(event["tip"] for event in chain), chain) for chain in chains), "trip")
        wanted += [(board, rank, score, len(chain)) for board, rank, score, chain in best]
    rows = found("growing_tips", trips)
    assert [(row["window_start"], row["rank"], row["score"], row["rides"]) for row in rows] == wanted


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("three_brands", PURCHASES.card_purchases(cards=2, purchases=60)),
        ("big_spenders", PURCHASES.card_purchases(cards=2, purchases=60)),
        ("buy_and_sell", MOVES.stock_moves(tickers=1, sectors=1, ticks=150)),
        ("rides_in_a_row", TRIPS.made_up_trips().slice(0, 300)),
        ("growing_tips", TRIPS.made_up_trips(trips=400).slice(0, 40)),
    ],
)
def test_few_events_equal_the_reference(name: str, events: pa.Table) -> None:
    assert found(name, events) == found(name, events, "reference") != []
