"""Every algorithm is right for whatever it accepts: alone, and whatever the order of the tuple.

The algorithms are those of the tuple, which holds all that the files of `planner/algorithms` define.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.cases import Case, read_cases, shown

import trendloom as tl
from trendloom.errors import PlanError
from trendloom.frontend.tql.parser import parse
from trendloom.frontend.tql.printer import write
from trendloom.planner import algorithms, plan
from trendloom.planner.algorithms import ALGORITHMS, ConsiderIn

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tql"))
CASES = [case for name in ("cases.json", "imprecise.json", "decisions.json") for case in read_cases(name)]
SUBSETS = {"reversed": ALGORITHMS[::-1]} | {one.name: (one,) for one in ALGORITHMS}


@pytest.fixture(params=SUBSETS)
def subset(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The planner with some of its algorithms."""
    monkeypatch.setattr(plan, "ALGORITHMS", SUBSETS[request.param])
    return str(request.param)


def test_the_tuple_holds_every_algorithm() -> None:
    defined = {
        ConsiderIn(path.stem)
        for path in Path(algorithms.__path__[0]).glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "consider"
    }
    assert {one.decide for one in ALGORITHMS} == defined
    assert len(defined) == len(ALGORITHMS) == len(SUBSETS) - 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_planned_or_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for subset in SUBSETS.values():
        monkeypatch.setattr(plan, "ALGORITHMS", subset)
        for query in parse(path.read_text()):
            assert "Physical plan" in tl.explain(write(query), engine="local")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_whatever_is_accepted_is_answered(subset: str) -> None:
    wrong = {case.name: found for case in CASES if (found := _answer(case)) not in (None, shown(case, case.expected))}
    assert wrong == {}
    assert subset != "reversed" or all(_answer(case) is not None for case in CASES)


def _answer(case: Case) -> list[Any] | None:
    """The rows of a case; None: it is refused."""
    try:
        return shown(case, tl.run(case.query, case.table(), engine="local", **case.run_options()).to_pylist())
    except PlanError:
        return None
