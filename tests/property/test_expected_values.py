"""Expected aggregates of imprecise time, and the probability of a match, are those of all worlds, each tried.

Queries are such that nothing has to be found (`expected`), or that signatures are summed; `explain` says which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.strategies_imprecise import ANY, COLUMNS, NEXT

import trendloom as tl
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.uncertain.expected import ExpectedKernel
from trendloom.options import Options
from trendloom.runtime.planning import planned_alone
from trendloom.runtime.reading import load

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

PLAIN = ("A v0", "B v1", "C v2")
REPEATED = ("A+ v0[]", "B v1", "C* v2[]")
OPTIONAL = ("A v0", "(B v1)?", "C v2")
SAME_TYPE = ("(A v0: v0.x < 2)", "(A v1: v1.x >= 2)")
LOCAL = ("", "", "v0.x > 0", "v1.x <= 2")
KEYS = ("", "[k]", "[k, g]")
SUMS = ("COUNT(*)", "COUNT(v0)", "COUNT(v1)", "SUM(v0.x)", "SUM(v1.x) + COUNT(*)")
CHANCE = "PROBABILITY(*)"
WINDOWS = ("", "WITHIN 4", "WITHIN 5 SLIDE 2", "WITHIN 3 SLIDE 4", "WITHIN 7 SLIDE 3")


@st.composite
def queries(draw: st.DrawFn, parts: tuple[str, ...], semantics: str, asked: tuple[str, ...]) -> str:
    """A query that groups by what it partitions by."""
    keys, where = draw(st.sampled_from(KEYS)), draw(st.sampled_from(LOCAL))
    grouped = keys.strip("[]")
    conditions = " AND ".join(filter(None, (keys, where)))
    returned = ", ".join(filter(None, (grouped, *draw(st.lists(st.sampled_from(asked), min_size=1, unique=True)))))
    return "\n".join(
        [
            f"RETURN {returned}",
            f"PATTERN SEQ({', '.join(parts[: draw(st.integers(2, len(parts)))])})",
            f"SEMANTICS {semantics}",
            f"WHERE {conditions}" if conditions else "",
            f"GROUP BY {grouped}" if grouped else "",
            draw(st.sampled_from(WINDOWS)),
        ]
    )


@dataclass(frozen=True)
class Stream:
    """Events with bounds, and how finely time is counted."""

    events: tuple[dict[str, Any], ...]
    grain: int

    @property
    def table(self) -> pa.Table:
        schema = pa.schema(list(COLUMNS.items()))
        return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in self.events], schema)

    @property
    def options(self) -> dict[str, Any]:
        bounds = {"time_low": "low", "time_high": "high", "time_probability": "p", "time_unit": "s"}
        return bounds | {"time_grain": f"{self.grain} s"}


@st.composite
def streams(draw: st.DrawFn, types: str) -> Stream:
    """Events that begin about in the order of their types, and have few worlds."""
    grain, worlds, events = draw(st.sampled_from([1, 1, 2])), 1, []
    for number in range(draw(st.integers(3, 6))):
        kind = draw(st.sampled_from(types))
        low = "ABC".index(kind) + draw(st.integers(-2, 4))
        high = low + draw(st.sampled_from([0, 1, 2, 3]))
        points = high // grain - low // grain + 1
        if worlds * points > 150:
            continue
        worlds *= points
        event = {"id": number, "type": kind, "low": low, "high": high, "x": draw(st.sampled_from([0, 1, 2, 3, None]))}
        event |= {"k": draw(st.sampled_from([1, 1, 1, 2])), "g": draw(st.sampled_from("uuv"))}
        weights = draw(st.none() | st.lists(st.sampled_from([0, 1, 2, 5]), min_size=points, max_size=points))
        if weights is not None and sum(weights):
            event["p"] = [weight / sum(weights) for weight in weights]
        events.append(event)
    return Stream(tuple(events), grain)


KINDS: dict[str, tuple[st.SearchStrategy[str], bool | None]] = {
    "sums of sequences": (queries(PLAIN, ANY, SUMS), True),
    "sums where conditions exclude each other": (queries(SAME_TYPE, ANY, SUMS), True),
    "probability of sequences": (queries(PLAIN, ANY, (CHANCE, "COUNT(*)")), True),
    "probability under next": (queries(REPEATED, NEXT, (CHANCE,)), True),
    "probability of repetitions": (queries(REPEATED, ANY, (CHANCE,)), True),
    "probability of optional parts": (queries(OPTIONAL, ANY, (CHANCE,)), True),
    "sums of repetitions": (queries(REPEATED, ANY, SUMS), False),
    "both of repetitions": (queries(REPEATED, ANY, (CHANCE, "COUNT(*)", "SUM(v0.x)")), None),
}
"""Queries by kind, and whether they are answered without finding matches; None: some are."""


@pytest.mark.parametrize("kind", KINDS)
def test_expected_values_are_those_of_all_worlds(kind: str) -> None:
    texts, without_matches = KINDS[kind]
    examples, with_rows = amount(40), 0

    @thorough(examples)
    @given(texts, streams("A" if "exclude" in kind else "ABC"))
    def compare(query: str, stream: Stream) -> None:
        nonlocal with_rows
        table = stream.table
        physical = planned_alone(parse_query(query), load(table, Options(**stream.options)).schema)
        if without_matches is not None:
            assert isinstance(physical.kernel, ExpectedKernel) == without_matches
        found, expected = (tl.run(query, table, engine=engine, **stream.options) for engine in ("local", "reference"))
        assert found.schema == expected.schema
        assert_close(found.to_pylist(), expected.to_pylist())
        with_rows += expected.num_rows > 0

    compare()
    assert with_rows >= at_least(0.2, examples)


def assert_close(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same rows in the same order, doubles up to rounding."""
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        for name, value in theirs.items():
            if isinstance(value, float):
                assert math.isclose(mine[name], value, rel_tol=1e-12, abs_tol=1e-13), name
            else:
                assert mine[name] == value, name
