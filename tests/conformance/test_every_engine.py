"""Every case on every engine: compiled, and once more with interpreted kernels."""

from __future__ import annotations

import json
from functools import cache

import pyarrow as pa
import pytest
from tests.conformance.cases import Case, Row, read_cases, shown

import trendloom as tl
from trendloom.engines.answers import answers
from trendloom.options import Options

GOLDEN = [*read_cases("cases.json"), *read_cases("imprecise.json")]
CASES = [*GOLDEN, *read_cases("decisions.json")]

ENGINES = (
    "reference",
    "local",
    pytest.param("local", marks=pytest.mark.interpreted, id="local, interpreted"),
    "spark",
)


def run(case: Case, engine: str) -> list[Row]:
    return tl.run(case.query, case.table(), engine=engine, **case.run_options()).to_pylist()


def stream_of(case: Case) -> str:
    """The same text for cases that ask the same stream."""
    return json.dumps([case.events, case.columns, case.run_options()])


@cache
def rows_on_spark(stream: str) -> dict[str, list[Row]]:
    """The rows of all cases that ask one stream, by their names: several are a workload, which is one job."""
    cases = [case for case in CASES if stream_of(case) == stream]
    if len(cases) == 1:
        return {cases[0].name: run(cases[0], "spark")}
    text = "\n".join(f"QUERY case{number}:\n{case.query}" for number, case in enumerate(cases))
    found = answers(text, cases[0].table(), Options(engine="spark", **cases[0].run_options()))
    tables = [pa.Table.from_batches(list(answer.batches)) for answer in found]
    return {case.name: table.to_pylist() for case, table in zip(cases, tables, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("engine", ENGINES)
def test_case(case: Case, engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    found = rows_on_spark(stream_of(case))[case.name] if engine == "spark" else run(case, engine)
    assert shown(case, found) == shown(case, case.expected)


def test_every_worked_example_is_there() -> None:
    assert len(GOLDEN) == 44


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
