"""Figures of a live stream's batches: added up once each, kept beside the checkpoint; what a query expects of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.engines.introspection import explain_queries
from trendloom.errors import OptionError
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import UNKNOWN, KeySpread, Origin
from trendloom.options import Options
from trendloom.runtime.reading import queries_of, schema_of_columns
from trendloom.streaming.statistics import NAME, Figures, figures_at, keep_figures, statistics_of_batches

COLUMNS = pa.schema([("time", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("x", pa.int64())])
QUERY = "QUERY q: RETURN k, COUNT(*) PATTERN SEQ(A a, B b) WHERE [k] AND b.x > 5 GROUP BY k WITHIN 10 SLIDE 5"
FIRST = Figures(0, 100, 2_000_000, 9_000_000, {"A": 60, "B": 40}, {("k",): 7}, {("q", 1): 4}, {("A", "x"): 5})
SECOND = Figures(
    1, 50, 1_000_000, 8_000_000, {"B": 30, "C": 20}, {("k",): 9, ("k", "x"): 3}, {("q", 1): 6}, {("A", "x"): 3}
)


def bound(text: str) -> Plan:
    return bind(queries_of(text)[0], schema_of_columns(COLUMNS, Options()))


def test_batches_add_up_and_one_that_is_done_again_counts_once() -> None:
    both = FIRST.and_(SECOND)
    assert both == Figures(
        1, 150, 1_000_000, 9_000_000, {"A": 60, "B": 70, "C": 20}, {("k",): 9, ("k", "x"): 3}, {("q", 1): 10},
        {("A", "x"): 5},
    )  # fmt: skip
    assert both.and_(SECOND) == both
    assert both.and_(FIRST) == both
    assert Figures().and_(FIRST) == FIRST


def test_they_are_kept_beside_the_checkpoint(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert figures_at(state) == Figures()
    keep_figures(SECOND, state)
    assert figures_at(state) == SECOND
    assert [path.name for path in (tmp_path / "state").iterdir()] == [NAME]
    (tmp_path / "state" / NAME).write_text('{"batch": 3}')  # no answer depends on it, so nothing stops for it
    assert figures_at(state) == Figures()


def test_what_a_query_may_expect() -> None:
    plan = bound(QUERY)
    known = statistics_of_batches(plan, FIRST)
    assert (known.origin, known.events, known.first, known.last) == (Origin.BATCHES, 100, 2, 9)
    assert known.keys == {("k",): KeySpread(7)}
    assert known.domains == {("A", "x"): 5.0}
    assert known.fitting == {0: 60, 1: 4}
    other = bound(QUERY.replace("QUERY q", "QUERY other"))
    assert statistics_of_batches(other, FIRST).fitting == {0: 60}, "nobody counted what passes its condition"
    assert statistics_of_batches(plan, Figures()) is UNKNOWN


def test_explain_tells_what_earlier_batches_let_expect(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    options = Options(schema="time long, type string, k long, x long")
    with pytest.raises(OptionError, match="no figures of a stream are kept in"):
        explain_queries(QUERY, None, options, checkpoint=state)
    keep_figures(FIRST, state)
    explained = explain_queries(QUERY, None, options, checkpoint=state)
    assert "100 events, at most 21 rows, by earlier micro-batches" in explained.text
    assert "by earlier micro-batches" not in tl.explain(QUERY)
