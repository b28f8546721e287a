"""EXPLAIN ANALYZE on a query without a match: what passes, what is reached, and what stops the rest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.logical.bind import bind
from trendloom.logical.display import draw
from trendloom.options import Options
from trendloom.runtime.funnel import describe_funnel, left_out
from trendloom.runtime.reading import load, queries_of

CARDS = pa.table(
    {
        "time": [0, 10, 20, 4000, 9000, 10000, 10010],
        "type": ["Login", "Login", "Buy", "Buy", "Logout", "Login", "Logout"],
        "card": ["x", "y", "x", "y", "x", "z", None],
        "amount": [5, 10, 3, 20, 9, 1, 2],
    }
)


def shown(query: str, events: pa.Table = CARDS, **options: object) -> list[str]:
    """The lines of the funnel, without guides and runs of spaces."""
    text = tl.explain(query, events, analyze=True, **options)  # type: ignore[arg-type]
    section = text.partition("How far matching gets")[2].partition("\n\n")[0]
    return [" ".join(line.strip("│├└─ ").split()) for line in section.split("\n")]


def test_every_condition_is_counted_alone() -> None:
    lines = shown("PATTERN SEQ(Login a, Buy b) WHERE a.amount > 4 AND a.amount < 6 AND b.amount > 100")
    assert "0 Login a 3 events, 1 pass, 1 reached" in lines
    assert lines[lines.index("a.amount > 4 2 pass it alone") + 1] == "a.amount < 6 2 pass it alone"
    assert "1 Buy b 2 events, 0 pass, 0 reached" in lines
    assert "without b.amount > 100 2 reached" in lines
    assert lines[-1] == "a match none is complete"


def test_what_stops_a_position_is_left_out_one_at_a_time() -> None:
    lines = shown("PATTERN SEQ(Login a, Buy b) WHERE [card] AND b.amount > a.amount WITHIN 1 hour")
    assert "left aside 1 of no partition: card is NULL" in lines
    assert "1 Buy b 2 events, 0 reached" in lines
    assert "without b.amount > a.amount 1 reached" in lines
    assert "without WITHIN 1 h 1 reached; the shortest way there takes 3990 s" in lines


def test_a_partition_attribute_can_be_what_stops() -> None:
    events = pa.table({"time": [1, 2], "type": ["A", "B"], "k": [1, 2]})
    assert "without [k] 1 reached" in shown("PATTERN SEQ(A a, B b) WHERE [k]", events)
    assert "without GROUP BY k 1 reached" in shown("RETURN COUNT(*) PATTERN SEQ(A a, B b) GROUP BY k", events)


def test_a_not_can_be_what_stops() -> None:
    events = pa.table({"time": [1, 2, 3], "type": ["A", "N", "B"], "k": [1, 2, 1]})
    lines = shown("PATTERN SEQ(A a, NOT N n, B b)", events)
    assert "1 NOT N n 1 event" in lines
    assert "without NOT N n 1 reached" in lines
    lines = shown("PATTERN SEQ(A a, B b, NOT SEQ(N n, N m))", events.append_column("x", [[1, 2, 3]]))
    assert lines[-1] == "a match 1 event ends one"


def test_a_trailing_not_stops_matches_that_went_all_the_way() -> None:
    events = pa.table({"time": [1, 2, 3], "type": ["A", "B", "N"]})
    lines = shown("PATTERN SEQ(A a, B b, NOT N n)", events)
    assert "1 B b 1 event, 1 reached" in lines
    assert lines[-2:] == ["a match none is complete", "without NOT N n 1 ends of a match"]


def test_a_condition_on_the_whole_stops_at_the_end() -> None:
    events = pa.table({"time": [1, 2, 3, 4], "type": ["A", "B", "B", "C"]})
    lines = shown("PATTERN SEQ(A a, B+ b[], C c) WHERE count(b[]) > 2", events)
    assert "2 C c 1 event, 1 reached" in lines
    assert lines[-1] == "without count(b[]) > 2 1 ends of a match"


def test_semantics_can_be_what_stops() -> None:
    events = pa.table({"time": [1, 2, 3], "type": ["A", "X", "B"]})
    lines = shown("PATTERN SEQ(A a, B b) SEMANTICS contiguous", events)
    assert "without SEMANTICS contiguous 1 reached" in lines


def test_several_together() -> None:
    events = pa.table({"time": [1, 20], "type": ["A", "B"], "x": [2, 1]})
    lines = shown("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", events)
    assert "stopped by several together: without any one of them still nothing gets here" in lines


def test_a_type_without_events() -> None:
    lines = shown("PATTERN SEQ(Login a, Refund r)")
    assert "1 Refund r no event of this type" in lines


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN AND(Login a, Buy b)",
        "PATTERN SEQ(OR(Login a, Buy b), Logout c)",
        "PATTERN SEQ(Login a, EXISTS b (Buy b), Logout c) WHERE b.amount > 3",
        "PATTERN SEQ(Login a, Buy b) RANK BY a.amount LIMIT 2",
        "PATTERN SEQ(NOT Buy, Login a, NOT SEQ(Buy b, NOT Login, Logout c), Logout d) WHERE [card]",
        "RETURN COLLAPSED TRENDS PATTERN SEQ(Login a, Buy+ b[])",
        "RETURN COUNT(*) PATTERN SEQ(Login a, Buy+ b[]) WITHIN 1 hour SLIDE 1 min HAVING COUNT(*) > 5",
    ],
)
@pytest.mark.parametrize("engine", ["local", "reference"])
def test_every_kind_of_query_is_looked_at(query: str, engine: str) -> None:
    lines = shown(query, engine=engine)
    assert lines[-1].startswith(("a match", "without"))
    assert any("reached" in line for line in lines)


def test_imprecise_time_is_not_looked_at() -> None:
    events = pa.table({"low": [1, 2], "high": [2, 3], "type": ["A", "B"]})
    lines = shown("PATTERN SEQ(A a, B b)", events, time_low="low", time_high="high", engine="reference")
    assert lines == ["not looked at: time is imprecise"]


class TestBounds:
    def events(self, number: int) -> pa.Table:
        kinds = np.array(["A", "B", "C", "D"])[np.arange(number) % 4]
        return pa.table({"time": np.arange(number), "type": kinds, "k": np.arange(number) // 100})

    def funnel(self, query: str, events: pa.Table, clock: list[float] | None = None) -> str:
        loaded = load(events, Options())
        (parsed,) = queries_of(query)
        ticks = iter(clock or [])
        plan = bind(parsed, loaded.schema)
        told = describe_funnel(plan, loaded, lambda: next(ticks, 99.0)) if clock else describe_funnel(plan, loaded)
        return "\n".join(draw(told))

    def test_of_a_long_stream_its_beginning_is_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("trendloom.runtime.funnel.MOST_PAIRS", 5000)
        told = self.funnel("PATTERN SEQ(A a, B b)", self.events(4000))
        assert "looked at  the first 201 of 4,000 events" in told
        assert "0 A a      1,000 events, 51 of 51 looked at reached" in told

    def test_of_many_partitions_some_are_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("trendloom.runtime.funnel.MOST_PAIRS", 5000)
        told = self.funnel("PATTERN SEQ(A a, B b) WHERE [k]", self.events(4000))
        assert "looked at  400 of 4,000 events: 4 of 40 partitions" in told

    def test_without_time_numbers_are_lower_bounds(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE b.k > a.k + 100"
        told = self.funnel(query, self.events(8), clock=[0.0, 0.0, 0.0, 0.0, 0.0])
        assert "numbers are lower bounds" in told
        assert "without b.k > a.k + 100  not known: looking would take long" in told
        assert "none was found" in told


def test_left_out_names_everything_that_can_stop() -> None:
    (query,) = queries_of(
        "PATTERN SEQ(Login a, NOT SEQ(Buy b, Buy c), Logout d) SEMANTICS contiguous "
        "WHERE [card] AND d.amount > a.amount AND b.amount > 1 WITHIN 2 min"
    )
    plan = bind(query, load(CARDS, Options()).schema)
    assert [what for what, _ in left_out(plan)] == [
        "d.amount > a.amount",
        "b.amount > 1",
        "[card]",
        "NOT (Buy b, Buy c)",
        "WITHIN 2 min",
        "SEMANTICS contiguous",
    ]
