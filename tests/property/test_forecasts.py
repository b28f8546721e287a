"""What is said before a run is true after it: an exact number is the number of rows, a bound is no less."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from tests.property.amounts import amount, thorough
from tests.property.strategies import ANY, Case, Knobs, cases, to_table

from trendloom.engines.local import stream_of
from trendloom.errors import BindError, PlanError
from trendloom.kernels.aggregate import block as counting
from trendloom.kernels.contract import Expected
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.runtime import task
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of

EXAMPLES = amount(100)
KNOBS = {
    "negation": Knobs(outputs=("trends",), nesting=1, most_conjuncts=1, semantics=(ANY,)),
    "any": Knobs(outputs=("trends", "values"), semantics=(ANY,)),
    "all semantics": Knobs(outputs=("trends", "values")),
    "complete": Knobs(outputs=("complete",), semantics=(ANY,), most_events=7),
}


@pytest.mark.parametrize("kind", KNOBS)
def test_a_forecast_comes_true(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "WORTH_COUNTING", -1.0)
    monkeypatch.setattr(task, "FIRST_ENTRIES", -1)
    exact, bounds = 0, 0

    @thorough(EXAMPLES)
    @given(cases(KNOBS[kind]))
    def check(case: Case) -> None:
        nonlocal exact, bounds
        events = load(to_table(case.events), Options())
        try:
            physical = plan_query(bind(queries_of(case.query)[0], events.schema))
        except (BindError, PlanError):
            assume(False)
            raise
        forecasts: list[Expected] = []
        shown = task.show(physical, stream_of(physical, events))
        rows = sum(len(b) for b in task.rows(shown, callbacks=task.RowCallbacks(foreseen=forecasts.append)))
        for one in forecasts:
            assert rows == one.number if one.exact else rows <= one.number, f"{one}, {rows} rows: {case.query}"
            exact, bounds = exact + one.exact, bounds + (not one.exact)

    check()
    assert exact + bounds >= EXAMPLES / 20
    assert exact > 0
    assert bounds > 0 or kind == "negation", "conditions that cannot be counted are rare beside a NOT"
