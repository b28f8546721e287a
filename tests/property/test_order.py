"""Events of equal time that columns put in order: the local engine gives the rows of the reference, and an order that
leaves no ties gives what distinct times give.

The examples are the same in every run; `TRENDLOOM_EXAMPLES=5000 pytest tests/property/test_order.py` looks at new ones.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Knobs
from tests.property.strategies_aggregates import GROUPINGS, NEGATED, PLAIN, Aimed
from tests.property.strategies_order import ORDERS, OrderedCase, ordered_cases, spread

import trendloom as tl
from trendloom.errors import BindError, PlanError

KINDS: dict[str, Knobs | Aimed] = {
    "any": Knobs(semantics=(ANY,), outputs=("trends", "values")),
    "any, of neighbours": Knobs(
        semantics=(ANY,), outputs=("trends",), classes=("local", "adjacent", "previous"), conjunction=False,
        predicates=False,
    ),
    "runs": Knobs(semantics=(NEXT, CONTIGUOUS), outputs=("trends", "values")),
    "negation": Knobs(outputs=("trends", "aggregates"), nesting=1, most_conjuncts=1),
    "complete": Knobs(semantics=(ANY,), outputs=("complete",)),
    "complete, one variable": Knobs(semantics=(ANY,), outputs=("complete",), most_atoms=1, negation=False),
    "collapsed": Knobs(semantics=(ANY,), outputs=("collapsed",)),
    "matrices": Aimed(PLAIN + NEGATED, ("nothing", "alone"), GROUPINGS),
    "transitions": Aimed(
        PLAIN + NEGATED, ("operators", "two", "equal and ordered", "two orders", "expressions", "distant", "previous")
    ),
    "totals of runs": Aimed(PLAIN + NEGATED, ("nothing", "operators"), GROUPINGS, semantics=(NEXT, CONTIGUOUS)),
    "totals": Knobs(outputs=("aggregates",)),
}  # fmt: skip
EXAMPLES = amount(40)
WITH_ROWS = 0.15
"""The least share of cases that have a row at all."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def run(case: OrderedCase, engine: str) -> pa.Table:
    table = case.shuffled() if engine == "local" else case.table()
    try:
        return tl.run(case.query, table, engine=engine, order=case.order)
    except (BindError, PlanError):
        assume(False)
        raise


def in_order(rows: pa.Table, order: tuple[str, ...]) -> bool:
    """Whether the events of every row are listed in their order."""
    if "events" not in rows.column_names:
        return True
    listed = (_instants(events, order) for events in rows["events"].to_pylist())
    return all(instants == sorted(instants) for instants in listed)


def _instants(events: list[dict[str, Any]], order: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [(e["time"], *((e[name] is not None, e[name] or type(e[name])()) for name in order)) for e in events]


@pytest.mark.parametrize("kind", KINDS)
def test_local_equals_reference(kind: str) -> None:
    compared, with_rows, different = 0, 0, 0

    @thorough(EXAMPLES)
    @given(ordered_cases(KINDS[kind]))
    def compare(case: OrderedCase) -> None:
        nonlocal compared, with_rows, different
        found, expected = run(case, "local"), run(case, "reference")
        assert rows_of(found) == rows_of(expected), (case.query, case.order)
        assert found.schema == expected.schema
        assert in_order(expected, case.order)
        assert in_order(found, case.order)
        compared += 1
        with_rows += expected.num_rows > 0
        different += rows_of(found) != rows_of(tl.run(case.query, case.table(), engine="local"))

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= at_least(WITH_ROWS, compared)
    assert different > 0, "an order that changes no answer proves nothing"


def test_collapsed_rows_enumerated_are_the_matches() -> None:
    @thorough(EXAMPLES // 2)
    @given(ordered_cases(KINDS["collapsed"]))
    def compare(case: OrderedCase) -> None:
        rows = run(case, "local")
        assume(len(set(rows_of(rows))) == len(rows))  # rows that look alike differ in positions that no row shows
        source = case.table() if "NOT" in case.query else None
        batches = [tl.expand(case.query, row, source, order=case.order) for row in rows.to_pylist()]
        found = [row for some in batches for batch in some for row in batch.to_pylist()]
        matches = replace(case, query=case.query.replace("COLLAPSED TRENDS", "TRENDS"))
        assert rows_of(found) == rows_of(run(matches, "local")), (case.query, case.order)

    compare()


@pytest.mark.parametrize("kind", KINDS)
def test_an_order_without_ties_is_as_good_as_distinct_times(kind: str) -> None:
    """Where no window, span or condition speaks of the time itself."""

    @thorough(EXAMPLES // 2)
    @given(ordered_cases(KINDS[kind], ORDERS[-2:]))
    def compare(case: OrderedCase) -> None:
        assume(not re.search(r"\btime\b|WITHIN|duration", case.query))
        for engine in ("reference", "local"):
            found, expected = run(case, engine), run(spread(case), engine)
            assert timeless(found) == timeless(expected), (engine, case.query)

    compare()


def timeless(rows: pa.Table) -> list[Any]:
    """The rows with events as their numbers and variables, in the order in which they are listed; windows by number."""
    listed = rows.to_pylist()
    starts = sorted({row.get("window_start") for row in listed if "window_start" in row})
    for row in listed:
        if "window_start" in row:
            row["window_start"], row["window_end"] = starts.index(row["window_start"]), None
        if "events" in row:
            row["listed"] = [[event["id"], event["var"]] for event in row.pop("events")]
    return rows_of(listed)


# ------------------------------------------------------------------------------------------- longer streams

MANY = 300
SLIDING = "WITHIN 6 SLIDE 3"
LONGER = {
    "type-grained": "RETURN k, COUNT(*), SUM(A.x), MIN(B.y) PATTERN SEQ(A+, NOT C, B) WHERE [k] GROUP BY k",
    "weights": "RETURN COUNT(*), AVG(A.x), MAX(A.x) PATTERN (SEQ(A+, B))+",
    "runs": "RETURN k, COUNT(*), SUM(A.x) PATTERN (SEQ(A+, B))+ SEMANTICS skip-till-next-match WHERE [k] GROUP BY k",
    "compared runs": "RETURN COUNT(*), MAX(a.x) PATTERN SEQ(A a+, B) SEMANTICS contiguous WHERE a.x < NEXT(a).x",
    "mixed-grained": "RETURN COUNT(*), SUM(a.x) PATTERN SEQ(A a+, B b) WHERE a.x <= NEXT(a).x",
    "event-grained": "RETURN COUNT(*) PATTERN SEQ(A a+, B b) WHERE abs(a.x - NEXT(a).x) < 2",
    "per pivot": "RETURN COUNT(*) PATTERN SEQ(A a, B b+, C c) WHERE a.x < b.x",
    "postponed": "PATTERN SEQ(A a, B b+, C c) WHERE [k] AND a.x = NEXT(b).x AND b.x < NEXT(b).x",
    "expansion": "PATTERN SEQ(A a, NOT C, B b, NOT A) WHERE [k]",
    "followed runs": "PATTERN SEQ(A a, B b+, C c) SEMANTICS skip-till-next-match WHERE a.x != NEXT(b).x",
    "complete": "RETURN COMPLETE TRENDS PATTERN A a+ WHERE a.x < NEXT(a).x",
    "collapsed": "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], C c) WHERE [k]",
}


@pytest.mark.parametrize("kind", LONGER)
def test_windows_over_longer_streams_as_with_distinct_times(kind: str) -> None:
    """Times far enough apart have a place for every event in between; windows grow with them."""
    chance = random.Random(kind)
    given = [(n, chance.choice("AABC"), chance.randint(0, 4)) for n in range(MANY)]
    events = [{"id": n, "type": type, "time": n // 5, "x": x, "y": 0.5, "k": n % 2} for n, type, x in given]
    case = OrderedCase(f"{LONGER[kind]} {SLIDING}", tuple(events), ("x", "id"))
    places = sorted(events, key=lambda e: (e["time"], e["x"], e["id"]))
    apart = tuple({**e, "time": e["time"] * MANY + place} for place, e in enumerate(places))
    wide = OrderedCase(f"{LONGER[kind]} WITHIN {6 * MANY} SLIDE {3 * MANY}", apart, ())
    found, expected = (timeless(run(one, "local")) for one in (case, wide))
    assert len(found) > 0
    assert found == expected
