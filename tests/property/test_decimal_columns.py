"""Decimals are exact on every engine: random queries over random streams of decimals give the rows of the reference.

Ties that doubles miss, keys that doubles merge, sums beyond 64 bits: see `strategies_decimals`.
"""

from __future__ import annotations

import pickle
import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, first_cases, thorough
from tests.property.compare import rows_of
from tests.property.live_cases import bounded
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Knobs
from tests.property.strategies_aggregates import GROUPINGS, NEGATED, PLAIN, Aimed
from tests.property.strategies_decimals import DecimalCase, decimal_cases, schema_of

import trendloom as tl
from trendloom.errors import BindError, OptionError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.runtime.planning import plan_query
from trendloom.spark import detect
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of

EVERY_CLASS = ("nothing", "alone", "operators", "two", "equal and ordered", "expressions", "previous", "distant")
KINDS: dict[str, Aimed | Knobs] = {
    "rows": Knobs(outputs=("trends", "values", "values")),
    "runs": Knobs(outputs=("values",), semantics=(NEXT, CONTIGUOUS)),
    "trends": Knobs(outputs=("complete", "collapsed"), semantics=(ANY,), most_conjuncts=1),
    "totals": Aimed(PLAIN + NEGATED, EVERY_CLASS, GROUPINGS),
    "totals of runs": Aimed(PLAIN, EVERY_CLASS, GROUPINGS, semantics=(NEXT, CONTIGUOUS)),
    "any totals": Knobs(outputs=("aggregates",)),
}
EXAMPLES = amount(35)
WITH_ROWS = 0.15
"""The least share of cases that have a row at all."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("kind", KINDS)
def test_local_equals_reference(kind: str) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(decimal_cases(KINDS[kind]))
    def compare(case: DecimalCase) -> None:
        nonlocal compared, with_rows
        try:
            found = tl.run(case.query, case.table(), engine="local")
        except (BindError, PlanError):
            assume(False)
            raise
        expected = tl.run(case.query, case.table(), engine="reference")
        assert rows_of(found) == rows_of(expected), case.query
        assert found.schema == expected.schema
        compared += 1
        with_rows += expected.num_rows > 0

    compare()
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= at_least(WITH_ROWS, compared)


# ---------------------------------------------------------------------------------------------------------- live


def streaming_query(case: DecimalCase) -> StreamingQuery:
    return streaming_query_of(plan_query(bind(parse_query(case.query), schema_of(case.arrow))), case.arrow, "exact")


def played(case: DecimalCase, cuts: list[int], buckets: int) -> pa.Table:
    """What a stream in order of time gives out whose state goes through bytes after every batch."""
    replay = Replay(streaming_query(case), 0, buckets)
    table = case.table().sort_by("time")
    found = []
    for begin, end in pairwise([0, *cuts, len(table)]):
        found.append(replay.batch(table.slice(begin, end - begin)))
        for number, memory in replay.memories.items():
            vars(replay.memories[number]).update(pickle.loads(pickle.dumps(vars(memory))))
        replay.streaming_query = streaming_query(case)
    assert sum(map(len, replay.late)) == 0
    return pa.concat_tables([*found, replay.flush()])


@pytest.mark.parametrize("kind", KINDS)
def test_a_live_stream_gives_what_a_batch_gives(kind: str) -> None:
    with_rows = 0

    @thorough(EXAMPLES // 3)
    @given(decimal_cases(KINDS[kind]), st.lists(st.integers(0, 9), max_size=3), st.integers(1, 3))
    def check(case: DecimalCase, cuts: list[int], buckets: int) -> None:
        nonlocal with_rows
        case = DecimalCase(bounded(case.query, 5, 2), case.events, case.flavour)
        try:
            found = played(case, sorted(min(cut, len(case.events)) for cut in cuts), buckets)
        except (BindError, PlanError):
            assume(False)
            raise
        assert rows_of(found) == rows_of(tl.run(case.query, case.table(), engine="local"))
        with_rows += len(found) > 0

    check()
    assert with_rows


# --------------------------------------------------------------------------------------------------------- spark

ON_SPARK = {"rows": 3, "totals": 4, "any totals": 3}
"""How many queries of a kind are run."""


def chosen(kind: str) -> list[tuple[DecimalCase, list[Any]]]:
    """Random cases with rows, the same in every run; neighbours are of different flavours."""
    before: list[str] = []

    def with_rows(case: DecimalCase) -> tuple[DecimalCase, list[Any]] | None:
        if case.flavour in before[-2:] or ".x" not in case.query:
            return None
        try:
            plan_query(bind(parse_query(case.query), schema_of(case.arrow)))
            expected = rows_of(tl.run(case.query, case.table(), engine="reference"))
        except (BindError, PlanError):
            return None
        if not expected:
            return None
        before.append(case.flavour)
        return case, expected

    return first_cases(decimal_cases(KINDS[kind]), with_rows, ON_SPARK[kind], seed=5, most=40 * ON_SPARK[kind])


@pytest.mark.parametrize("kind", ON_SPARK)
def test_spark_equals_reference(kind: str, spark: Any) -> None:
    cases = chosen(kind)
    assert len(cases) == ON_SPARK[kind]
    for number, (case, expected) in enumerate(cases):
        rows = list(case.events)
        random.Random(number).shuffle(rows)
        df = spark.createDataFrame(pa.Table.from_pylist(rows, schema=case.arrow)).repartition(1 + number % 3)
        for path in ("general",) if kind == "rows" else ("general", "reduced", "cut"):
            try:
                result = detect(df, case.query, path=path).toArrow()
            except OptionError:  # the query or its columns do not allow the path
                continue
            assert rows_of(result) == expected, (path, case.query)
