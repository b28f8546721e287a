"""Aggregates over matches: the local engine gives the rows of the reference, however it gets at them.

Every kind of query gets its own share of random cases: shapes of patterns, NOTs, each class of predicate on
transitions, groups, windows. The engine sees the rows in another order than the reference. The examples are the same in
every run; `TRENDLOOM_EXAMPLES=5000 pytest tests/property/test_aggregates.py` looks at new ones.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Case, Knobs, Row, cases, to_table
from tests.property.strategies_aggregates import ENTANGLED, GROUPINGS, HIDDEN, NEGATED, PLAIN, Aimed, aimed

import trendloom as tl
from trendloom.errors import BindError, PlanError, RunError

EVERY_CLASS = ("nothing", "alone", "operators", "two", "equal and ordered", "two orders", "expressions", "everywhere",
               "previous", "distant")  # fmt: skip
KINDS: dict[str, Aimed | Knobs] = {
    "patterns": Aimed(classes=("nothing", "alone")),
    "negation": Aimed(NEGATED, ("nothing", "nothing", "alone")),
    "negation and transitions": Aimed(NEGATED, ("operators", "equal and ordered", "expressions", "distant")),
    "one comparison": Aimed(classes=("operators",)),
    "two comparisons": Aimed(classes=("two", "two orders")),
    "equal and ordered": Aimed(classes=("equal and ordered",)),
    "expressions of two events": Aimed(classes=("expressions",)),
    "every transition": Aimed(classes=("everywhere",)),
    "the event before": Aimed(classes=("previous",)),
    "distant events": Aimed(classes=("distant",)),
    "groups": Aimed(PLAIN + NEGATED, EVERY_CLASS, GROUPINGS),
    "runs": Aimed(PLAIN + NEGATED, EVERY_CLASS, semantics=(NEXT, CONTIGUOUS)),
    "anything, any": Knobs(outputs=("aggregates",), semantics=(ANY,)),
    "anything, runs": Knobs(outputs=("aggregates",), semantics=(NEXT, CONTIGUOUS)),
    "hidden events": Aimed(HIDDEN, ("nothing", "nothing", "alone"), semantics=(ANY,), most_events=10),
    "entangled hidden events": Aimed(ENTANGLED, ("nothing", "alone")),
    "hidden, and compared": Aimed(HIDDEN + ENTANGLED, ("operators", "distant"), semantics=(ANY,), most_events=10),
    "extreme values": Knobs(outputs=("aggregates",), extreme=True, most_atoms=3, most_conjuncts=1),
}
EXAMPLES = amount(20)
WITH_ROWS = 0.15
"""The least share of cases that have a row at all: comparing nothing with nothing proves little."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def drawn(kind: str) -> st.SearchStrategy[Case]:
    knobs = KINDS[kind]
    return aimed(knobs) if isinstance(knobs, Aimed) else cases(knobs)


def shuffled(case: Case) -> pa.Table:
    rows = list(case.events)
    random.Random(case.query).shuffle(rows)
    return to_table(rows)


def run_local(case: Case, numeric: str = "exact") -> pa.Table:
    try:
        return tl.run(case.query, shuffled(case), engine="local", numeric=numeric)
    except (BindError, PlanError):
        assume(False)
        raise


@pytest.mark.parametrize("kind", KINDS)
def test_local_aggregates_equal_reference(kind: str) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(drawn(kind))
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        found = run_local(case)
        expected = tl.run(case.query, case.table(), engine="reference")
        assert rows_of(found) == rows_of(expected), case.query
        assert found.schema == expected.schema
        compared += 1
        with_rows += expected.num_rows > 0

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= at_least(WITH_ROWS, compared)


@pytest.mark.parametrize("kind", ["groups", "runs"])
def test_order_of_rows_means_nothing(kind: str) -> None:
    @thorough(EXAMPLES // 4)
    @given(drawn(kind), st.randoms(use_true_random=False))
    def compare(case: Case, chance: random.Random) -> None:
        found = run_local(case)
        rows = list(case.events)
        chance.shuffle(rows)
        assert rows_of(tl.run(case.query, to_table(rows), engine="local")) == rows_of(found), case.query

    compare()


# ----------------------------------------------------------------------------------------------- number systems

SUM_OR_COUNT = re.compile(r"(COUNT|SUM)\([^()]*\)")


def as_doubles(row: Row) -> Row:
    return {name: float(value) if is_number(name, value) else value for name, value in row.items()}


def as_logarithms(row: Row) -> Row:
    """COUNT and SUM by themselves become logarithms, and zero NULL; everything else stays a plain number."""
    found = as_doubles(row)
    for name, value in found.items():
        if SUM_OR_COUNT.fullmatch(name) and value is not None:
            found[name] = math.log10(value) if value else None
    return found


def is_number(name: str, value: Any) -> bool:
    return "(" in name and value is not None and not isinstance(value, str)


def has_logarithms(rows: list[Row]) -> bool:
    return all(
        value is None or value >= 0 for row in rows for name, value in row.items() if SUM_OR_COUNT.fullmatch(name)
    )


@pytest.mark.parametrize("kind", ["patterns", "negation", "every transition", "groups", "anything, any"])
def test_numbers_are_those_of_exact(kind: str) -> None:
    in_float, in_log, refused = 0, 0, 0

    @thorough(EXAMPLES // 2)
    @given(drawn(kind))
    def compare(case: Case) -> None:
        nonlocal in_float, in_log, refused
        rows = run_local(case).to_pylist()
        assert rows_of(run_local(case, "float")) == rows_of(map(as_doubles, rows)), case.query
        in_float += bool(rows)
        if has_logarithms(rows):
            assert rows_of(run_local(case, "log")) == rows_of(map(as_logarithms, rows)), case.query
            in_log += bool(rows)
        else:
            with pytest.raises(RunError, match="negative"):
                run_local(case, "log")
            refused += 1

    compare()
    assert in_float >= at_least(WITH_ROWS, EXAMPLES // 2)
    assert in_log > 0


# ------------------------------------------------------------------------------------------------------ corners


@pytest.mark.parametrize("semantics", [ANY, NEXT, CONTIGUOUS])
@pytest.mark.parametrize("shape", [*PLAIN, *NEGATED], ids=lambda shape: shape.pattern)
def test_every_shape_on_few_events(shape: Any, semantics: str) -> None:
    """No event, one, two of one time, and a full stream with every type twice at some time."""
    if shape.only_any:
        semantics = ANY
    name, kind = next(iter(shape.types.items()))
    query = (
        f"RETURN COUNT(*), COUNT({name}), SUM({name}.x), MIN({name}.x), MAX({kind}.y), AVG({kind}.x)\n"
        f"PATTERN {shape.pattern}\nSEMANTICS {semantics}"
    )
    row = {"id": 0, "x": 1, "y": 0.5, "g": "u", "k": 1}
    one = {**row, "type": kind, "time": -1}
    many = [{**row, "type": letter, "time": time, "x": time} for time, letter in enumerate("ABACBAB")]
    for rows in ([], [one], [one, {**one, "x": None}], [*many, {**one, "time": 2, "x": 7}]):
        found = tl.run(query, to_table(rows), engine="local")
        expected = tl.run(query, to_table(rows), engine="reference")
        assert rows_of(found) == rows_of(expected)
        assert found.schema == expected.schema
