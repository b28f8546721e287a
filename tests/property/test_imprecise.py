"""Matches of imprecise time are those of all worlds, each tried: random queries over random events.

Confidences are compared as fractions; those in rows, which are doubles, up to rounding. Deep runs:
`TRENDLOOM_EXAMPLES=5000 pytest tests/property/test_imprecise.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import canonical
from tests.property.strategies_imprecise import ANY, NEXT, ImpreciseCase, ImpreciseKnobs, imprecise_cases

import trendloom as tl
from trendloom.engines import local
from trendloom.engines.reference.answers import plain_rows, table_of_rows
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import Events
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.uncertain.confidence.confidence import exact_confidence
from trendloom.kernels.uncertain.kernel import ImpreciseKernel, signatures_of
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.planner.plan import Physical
from trendloom.reference.evaluate import evaluate
from trendloom.runtime.blocks import build_block
from trendloom.runtime.planning import planned_alone
from trendloom.runtime.reading import load

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KNOBS = {
    "any": (ImpreciseKnobs(semantics=(ANY,)), 350),
    "any, one type of each": (ImpreciseKnobs(semantics=(ANY,), types="ABC", most_events=7), 150),
    "next": (ImpreciseKnobs(semantics=(NEXT,)), 400),
    "next, overlapping": (ImpreciseKnobs(semantics=(NEXT,), types="AAB", conditions=False), 300),
    "without NOT": (ImpreciseKnobs(negation=False), 250),
    "NOT": (ImpreciseKnobs(types="AAB", repetition=False), 200),
    "totals": (ImpreciseKnobs(outputs=("totals",), negation=False), 200),
    "totals of sequences": (
        ImpreciseKnobs((ANY,), ("totals",), "ABC", negation=False, repetition=False, conditions=False),
        150,
    ),
}
WITH_ROWS = 0.2
"""The least share of cases that have a row at all."""
EXACT = 1e-12
"""How far doubles may be from the fractions, relatively."""


@pytest.mark.parametrize("kind", KNOBS)
def test_matches_are_those_of_all_worlds(kind: str) -> None:
    knobs, usual = KNOBS[kind]
    examples = amount(usual)
    compared, with_rows = 0, 0

    @thorough(examples)
    @given(imprecise_cases(knobs))
    def compare(case: ImpreciseCase) -> None:
        nonlocal compared, with_rows
        events = load(case.table(), Options(**case.options))
        try:
            physical = planned_alone(parse_query(case.query), events.schema)
        except (BindError, PlanError):
            return
        plan = bind(parse_query(case.query), events.schema)
        expected = evaluate(plan, plain_rows(events))
        found = tl.run(case.query, case.table(), **case.options)
        assert_rows_equal(found, table_of_rows(plan, events.table, expected))
        if isinstance(physical.kernel, ImpreciseKernel) and not physical.aggregates:
            known = {(r.window, r.events, r.confidence, r.time_low, r.time_high) for r in expected if r.events}
            assert not known or set(exact_signatures(physical, events)) == known
        compared += 1
        with_rows += len(expected) > 0

    compare()
    assert compared >= 0.9 * examples
    assert with_rows >= at_least(WITH_ROWS, compared)


def exact_signatures(physical: Physical, events: Events) -> Iterator[tuple[Any, ...]]:
    """What the kernel finds, with exact confidences: the window, rows and variables, the confidence and the times."""
    block, _ = build_block(physical, local.stream_of(physical, events))
    assert isinstance(block, IntervalBlock)
    places, within, threshold = physical.pattern_spec.places, physical.plan.window.within, physical.plan.confidence
    for some in signatures_of(physical.pattern_spec, block):
        for number in range(len(some)):
            confidence, low, high = exact_confidence(some, block, number)
            match = some.matches.part(number, number + 1)
            rows = block.row[match.events].tolist()
            names = [places[position].variable for position in match.positions]
            start = None if match.window_start is None else int(match.window_start[0])
            if confidence and confidence >= (threshold or 0):
                window = None if start is None else (start, start + (within or 0))
                yield window, tuple(zip(rows, names, strict=True)), confidence, low * block.grain, high * block.grain


def assert_rows_equal(found: pa.Table, expected: pa.Table) -> None:
    """The same rows; doubles up to rounding, everything else exactly."""
    assert found.schema == expected.schema
    doubles = [one.name for one in found.schema if pa.types.is_float64(one.type)]
    mine, theirs = (sorted(map(_apart(doubles), t.to_pylist()), key=canonical_pair) for t in (found, expected))
    assert [row[0] for row in mine] == [row[0] for row in theirs]
    numbers = [(a, b) for one, other in zip(mine, theirs, strict=True) for a, b in zip(one[1], other[1], strict=True)]
    for a, b in numbers:
        assert a == b if a is None or b is None else math.isclose(a, b, rel_tol=EXACT, abs_tol=1e-300)


def canonical_pair(row: tuple[Any, tuple[float | None, ...]]) -> Any:
    return row[0], canonical(list(row[1]))


def _apart(doubles: list[str]) -> Any:
    """A row without its doubles, and these."""

    def split(row: dict[str, Any]) -> tuple[Any, tuple[float | None, ...]]:
        rest = {name: value for name, value in row.items() if name not in doubles}
        return canonical(rest), tuple(row[name] for name in doubles)

    return split
