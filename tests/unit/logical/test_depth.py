"""Queries that are nested too deeply are refused, and do not run into the end of Python's stack."""

from __future__ import annotations

import pytest

import trendloom as tl
from trendloom.errors import BindError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.runtime.planning import plan_query

SCHEMA = Schema((Column("time", Kind.INT), Column("type", Kind.STRING), Column("x", Kind.INT)))


def planned(text: str) -> None:
    plan_query(bind(parse_query(text), SCHEMA))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A WHERE " + "abs(" * 150 + "A.x" + ")" * 150 + " < 3",
        "PATTERN A WHERE " + "NOT " * 150 + "A.x < 3",
        "PATTERN A WHERE A.x < " + " + ".join(["A.x"] * 300),
        "PATTERN " + "SEQ(A, NOT " * 60 + "B" + ", C)" * 60,
        "PATTERN SEQ(B, A{0,1500})",
    ],
    ids=["calls", "nots", "terms", "patterns", "options"],
)
def test_too_deep(text: str) -> None:
    with pytest.raises(BindError, match="nested too deeply") as caught:
        planned(text)
    assert caught.value.line == 1
    assert caught.value.hint is not None


def test_a_plan_too_deep_to_be_drawn_is_refused() -> None:
    with pytest.raises(BindError, match="nested too deeply"):
        tl.explain("PATTERN SEQ(A{12,300}, C)")


def test_a_long_pattern_is_drawn() -> None:
    assert len(tl.explain("PATTERN SEQ(A{60}, C)").splitlines()) > 120


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A WHERE " + "abs(" * 50 + "A.x" + ")" * 50 + " < 3",
        "PATTERN A WHERE A.x < " + " + ".join(["A.x"] * 100),
        "PATTERN " + "SEQ(A, NOT " * 20 + "B" + ", C)" * 20,
        "PATTERN A WHERE " + " OR ".join(f"A.x = {number}" for number in range(500)),
    ],
)
def test_what_people_write_is_not(text: str) -> None:
    planned(text)
