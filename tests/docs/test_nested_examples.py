"""Nested queries over tools, stocks and loans find what plain programs find, on short streams what the reference does.

The real loan log is not part of the project. TRENDLOOM_LOANS=FILE.parquet names a copy; the numbers in docs/nesting.md
are then checked too.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.docs.test_examples import EXAMPLES, program

import trendloom as tl

NESTING, LOANS = (EXAMPLES / "nesting.tql").read_text(), (EXAMPLES / "loans.tql").read_text()
REAL_LOANS = os.environ.get("TRENDLOOM_LOANS")
TOOLS, MOVES, LOG = program("tool_histories"), program("stock_moves"), program("loan_log")
TOOL_QUERIES = ("unsafe_tool", "unchecked", "disinfected_too_early", "sharpened_and_disinfected")
STOCK_QUERIES = ("unbroken_rises", "calm_after_a_rise", "rises_by_ticker")

Row = dict[str, Any]
Rows = list[tuple[Any, ...]]

pytestmark = pytest.mark.filterwarnings("ignore:.*have the same time as another")


def found(name: str, events: pa.Table, engine: str = "local") -> Rows:
    """The rows of a query as sorted tuples."""
    rows = tl.run(NESTING, events, query=name, engine=engine).drop_columns("query").to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.fixture(scope="module")
def tools() -> pa.Table:
    events: pa.Table = TOOLS.tool_histories()
    return events


@pytest.fixture(scope="module")
def moves() -> pa.Table:
    events: pa.Table = MOVES.stock_moves()
    return events


# -------------------------------------------------------------------------------------------------------- tools


def test_histories_are_always_the_same_and_have_the_share_of_mistakes_asked_for(tools: pa.Table) -> None:
    assert TOOLS.tool_histories().equals(tools)
    perfect = TOOLS.tool_histories(unsafe=0.0)
    assert len(perfect) == TOOLS.TOOLS * TOOLS.ROUNDS * 6
    assert all(len(of_tool) == TOOLS.ROUNDS * 6 for of_tool in TOOLS.histories(perfect).values())
    lost = len(perfect) - len(tools)  # three mistakes of four lose a step
    assert lost == pytest.approx(TOOLS.UNSAFE * TOOLS.TOOLS * TOOLS.ROUNDS * 3 / 4, rel=0.2)


def test_unsafe_uses_are_those_of_a_plain_program(tools: pa.Table) -> None:
    unsafe = TOOLS.unsafe_uses(tools)
    assert found("unsafe_tool", tools) == unsafe
    assert len(unsafe) == 84


def test_without_mistakes_no_use_is_unsafe() -> None:
    perfect = TOOLS.tool_histories(tools=50, unsafe=0.0)
    assert found("unsafe_tool", perfect) == TOOLS.unsafe_uses(perfect) == []


def washed_and_used(events: pa.Table, within: int) -> list[tuple[int, Any, int, int]]:
    """Tool, history, and the places in it of a washing and of a later surgery."""
    return [
        (tool, history, washed, used)
        for tool, history in TOOLS.histories(events).items()
        for used, (end, step, purpose) in enumerate(history)
        for washed, (begin, before, _) in enumerate(history[:used])
        if (step, purpose, before) == ("Operating", "surgery", "Washing") and end - begin < within
    ]


def test_unchecked_uses_have_no_check_in_between(tools: pa.Table) -> None:
    wanted = sorted(
        (tool, history[washed][0], history[used][0])
        for tool, history, washed, used in washed_and_used(tools, 3600)
        if "Checking" not in [step for _, step, _ in history[washed:used]]
    )
    assert found("unchecked", tools) == wanted
    assert len(wanted) > 10


def test_a_disinfection_holds_until_the_tool_is_recycled(tools: pa.Table) -> None:
    wanted = []
    for tool, history, washed, used in washed_and_used(tools, 7200):
        holds = False
        for _, step, _ in history[washed + 1 : used]:
            holds = step == "Disinfection" or (holds and step != "Recycle")
        if not holds:
            wanted.append((tool, history[washed][0], history[used][0]))
    assert found("disinfected_too_early", tools) == sorted(wanted)
    assert set(wanted) - set(found("unchecked", tools))


def test_an_operation_may_use_a_variable_of_the_sequence_inside(tools: pa.Table) -> None:
    wanted = sorted(
        (tool, history[washed][0], history[sharpened][0], history[disinfected][0], history[used][0])
        for tool, history, washed, used in washed_and_used(tools, 3600)
        for sharpened in range(washed + 1, used)
        for disinfected in range(sharpened + 1, used)
        if (history[sharpened][1], history[disinfected][1]) == ("Sharpening", "Disinfection")
    )
    assert found("sharpened_and_disinfected", tools) == wanted
    assert len(wanted) > 500


@pytest.mark.parametrize("name", TOOL_QUERIES)
def test_few_tools_equal_the_reference(name: str) -> None:
    events = TOOLS.tool_histories(tools=4, rounds=3, unsafe=0.9, seed=5)
    assert found(name, events) == found(name, events, "reference") != []


# ------------------------------------------------------------------------------------------------------- stocks


def moves_by_type(moves: pa.Table) -> dict[str, list[Row]]:
    by_type: dict[str, list[Row]] = defaultdict(list)
    for row in moves.to_pylist():
        by_type[row["type"]].append(row)
    return by_type


def is_made_good(fall: Row, until: float, recoveries: list[Row]) -> bool:
    return any(r["ticker"] == fall["ticker"] and fall["time"] < r["time"] < until for r in recoveries)


def test_unbroken_rises_are_those_of_a_plain_program(moves: pa.Table) -> None:
    of = moves_by_type(moves)
    wanted = [
        (a["ticker"], a["time"], b["ticker"], b["time"])
        for a in of["Rise"]
        for b in of["Rise"]
        if a["sector"] == b["sector"] and a["change"] < b["change"] and 0 < b["time"] - a["time"] < 300
        if all(
            is_made_good(f, b["time"], of["Recovery"])
            for f in of["Fall"]
            if f["sector"] == a["sector"] and a["time"] < f["time"] < b["time"]
        )
    ]
    assert found("unbroken_rises", moves) == sorted(wanted)
    assert len(wanted) > 300


def test_calm_after_a_rise_lasts_two_minutes(moves: pa.Table) -> None:
    of = moves_by_type(moves)
    wanted = [
        (a["ticker"], a["time"])
        for a in of["Rise"]
        if all(
            is_made_good(f, a["time"] + 120, of["Recovery"])
            for f in of["Fall"]
            if f["sector"] == a["sector"] and f["change"] < -a["change"] and a["time"] < f["time"] < a["time"] + 120
        )
    ]
    assert found("calm_after_a_rise", moves) == sorted(wanted)
    assert len(wanted) > 100


def test_pairs_of_rises_are_counted_by_ticker_and_window(moves: pa.Table) -> None:
    of = moves_by_type(moves)
    pairs: Counter[tuple[str, int, int]] = Counter()
    most: dict[tuple[str, int, int], float] = {}
    for a in of["Rise"]:
        window = a["time"] // 900 * 900
        for b in of["Rise"]:
            if a["ticker"] == b["ticker"] and a["time"] < b["time"] < window + 900 and not dives(a, b, of):
                key = (a["ticker"], window, window + 900)
                pairs[key] += 1
                most[key] = max(most.get(key, 0.0), b["change"])
    assert found("rises_by_ticker", moves) == sorted((*key, count, most[key]) for key, count in pairs.items())
    assert sum(pairs.values()) > 200


def dives(a: Row, b: Row, of: dict[str, list[Row]]) -> bool:
    """Whether the ticker falls deeper than it rose before it has recovered from anything, all between a and b."""
    return any(
        not any(r["ticker"] == a["ticker"] and a["time"] < r["time"] < f["time"] for r in of["Recovery"])
        for f in of["Fall"]
        if f["ticker"] == a["ticker"] and a["time"] < f["time"] < b["time"] and f["change"] < -a["change"]
    )


@pytest.mark.parametrize("name", STOCK_QUERIES)
def test_few_moves_equal_the_reference(name: str) -> None:
    events = MOVES.stock_moves(tickers=4, sectors=2, ticks=50, seed=3)
    assert found(name, events) == found(name, events, "reference") != []


# -------------------------------------------------------------------------------------------------------- loans


VALIDATE, CALL = LOG.VALIDATE, LOG.CALL
REAL, MADE_UP = 262_200, 9_281
"""How many events the two logs have."""


@pytest.fixture(scope="module", params=["made up", *(["real"] if REAL_LOANS else [])])
def loans(request: pytest.FixtureRequest) -> pa.Table:
    if request.param == "real":
        return pq.read_table(Path(str(REAL_LOANS)))
    log: pa.Table = LOG.made_up_log()
    return log


def asked(name: str, events: pa.Table, engine: str = "local") -> Rows:
    rows = tl.run(LOANS, events, query=name, engine=engine).to_pylist()
    return sorted((row["case_id"], row["approved"]) for row in rows)


def by_application(events: pa.Table) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in events.to_pylist():
        found[row["case_id"]].append(row)
    return found


def last_before(events: list[Row], type: str, end: Any) -> list[Any]:
    """When a type last happened before a time: as often as it happened then."""
    times = [row["time"] for row in events if row["type"] == type and row["time"] < end]
    return [time for time in times if time == max(times)]


def approvals(events: pa.Table) -> list[tuple[list[Row], Row]]:
    """Each approval, after the events of its application."""
    return [(rows, row) for rows in by_application(events).values() for row in rows if row["type"] == "A_APPROVED"]


def without_validation(events: pa.Table) -> Rows:
    return sorted(
        (approval["case_id"], approval["time"])
        for rows, approval in approvals(events)
        for since in last_before(rows, CALL, approval["time"])
        if not any(row["type"] == VALIDATE and since < row["time"] < approval["time"] for row in rows)
    )


def without_colleague(events: pa.Table, *, undone: bool) -> Rows:
    """Approved without another's validation since the offer came back; `undone`: one that a call did not undo."""
    listed = []
    for rows, approval in approvals(events):
        calls = [row["time"] for row in rows if row["type"] == CALL and row["time"] < approval["time"]]
        validated = [
            row["time"]
            for row in rows
            if (row["type"], row["lifecycle"]) == (VALIDATE, "COMPLETE") and row["time"] < approval["time"]
            if None not in (row["resource"], approval["resource"]) and row["resource"] != approval["resource"]
        ]
        for since in last_before(rows, "O_SENT_BACK", approval["time"]):
            good = [at for at in validated if at > since and not (undone and any(call > at for call in calls))]
            if not good:
                listed.append((approval["case_id"], approval["time"]))
    return sorted(listed)


def test_loans_approved_without_validation(loans: pa.Table) -> None:
    wanted = without_validation(loans)
    assert asked("approved_without_validation", loans) == wanted
    assert len(wanted) == {REAL: 195, MADE_UP: 14}[len(loans)]


def test_loans_that_one_pair_of_eyes_approved(loans: pa.Table) -> None:
    strict, lenient = without_colleague(loans, undone=True), without_colleague(loans, undone=False)
    assert asked("approved_by_one_pair_of_eyes", loans) == strict
    assert asked("approved_without_a_colleague", loans) == lenient
    assert len(lenient) < len(strict)
    assert (len(strict), len(lenient)) == {REAL: (1910, 1649), MADE_UP: (166, 129)}[len(loans)]


@pytest.mark.parametrize(
    "name", ["approved_without_validation", "approved_by_one_pair_of_eyes", "approved_without_a_colleague"]
)
def test_few_loans_equal_the_reference(name: str) -> None:
    log = LOG.made_up_log(applications=120, seed=3)
    assert asked(name, log) == asked(name, log, "reference") != []
