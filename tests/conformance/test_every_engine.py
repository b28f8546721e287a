"""Every case on every engine: an engine gives the expected rows, or says by name which feature it lacks.

`MISSING` is the honest table of what is still to come. An engine that learns a feature fails here until the table says
so.
"""

from __future__ import annotations

import re

import pytest
from tests.conformance.cases import Case, read_cases, shown

import trendloom as tl
from trendloom.errors import PlanError

GOLDEN = [*read_cases("cases.json"), *read_cases("imprecise.json")]
CASES = [*GOLDEN, *read_cases("decisions.json")]

OF_THE_KERNELS = (
    "RANK BY",
    "imprecise time",
    "EXISTS",
    "a NOT at an optional end of a part of AND",
)
MISSING = {"reference": (), "local": OF_THE_KERNELS, "spark": OF_THE_KERNELS}


def run(case: Case, engine: str) -> list[dict[str, object]]:
    return tl.run(case.query, case.table(), engine=engine, **case.run_options()).to_pylist()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("engine", MISSING)
def test_case(case: Case, engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    missing = [feature for feature in case.features() if feature in MISSING[engine]]
    if missing:
        with pytest.raises(PlanError, match=re.escape(missing[0])):
            run(case, engine)
    else:
        assert shown(case, run(case, engine)) == shown(case, case.expected)


def test_every_worked_example_is_there() -> None:
    assert len(GOLDEN) == 44


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("feature", OF_THE_KERNELS)
def test_every_missing_feature_has_a_case(feature: str) -> None:
    assert any(feature in case.features() for case in CASES)
