"""Spark gives the rows of the reference, for random queries over random streams.

A Spark job costs half a second however small it is, so one job runs a query over several streams: each is a *case*, and
`[case]` in WHERE keeps them apart. Rows come in any order, in any number of partitions, in Arrow batches of any size.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from tests.property.amounts import first_cases
from tests.property.compare import rows_of
from tests.property.strategies import ANY, ARROW, Knobs, Row, queries, streams
from tests.property.strategies_nesting import KINDS as NESTED
from tests.property.strategies_nesting import Nesting, nested_queries
from tests.property.strategies_order import ORDERS, Order, crowded
from tests.property.strategies_patterns import TYPES, variables_of

import trendloom as tl
from trendloom.errors import BindError, OptionError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.spark import detect

STREAMS = 6
KNOBS: dict[str, tuple[Knobs | Nesting, int]] = {
    "matches": (Knobs(outputs=("trends", "complete", "values")), 5),
    "collapsed": (Knobs(semantics=(ANY,), outputs=("collapsed",)), 3),
    "totals": (Knobs(outputs=("aggregates",)), 3),
    "coarse totals": (Knobs(outputs=("aggregates",), most_conjuncts=1), 3),
    "matches in order": (Knobs(outputs=("trends", "complete", "collapsed", "values")), 3),
    "remainders": (Knobs(outputs=("trends", "complete", "collapsed", "values"), hiding=True), 4),
    "totals of remainders": (Knobs(outputs=("aggregates",), hiding=True, most_conjuncts=1), 3),
    "totals in order": (Knobs(outputs=("aggregates",), most_conjuncts=1), 3),
    "nested matches": (NESTED["rows"], 4),
    "nested totals": (NESTED["aggregates"], 3),
    "coarse nested totals": (NESTED["aggregates"], 3),
}
"""What kinds of queries, and how many of each: STREAMS times as many pairs."""
BY_MATCH = ("matches", "collapsed", "remainders", "matches in order", "nested matches")
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True)
class Batch:
    query: str
    streams: tuple[tuple[Row, ...], ...]
    order: Order = ()

    def tables(self) -> list[pa.Table]:
        """One table per stream, with the number of its case."""
        schema = ARROW.append(pa.field("case", pa.int64()))
        numbered = enumerate(self.streams)
        return [pa.Table.from_pylist([{**row, "case": n} for row in rows], schema=schema) for n, rows in numbered]


@st.composite
def batches(draw: st.DrawFn, kind: str) -> Batch:
    knobs = KNOBS[kind][0]
    query = draw(queries(knobs) if isinstance(knobs, Knobs) else nested_queries(knobs))
    used = sorted({variable.type for variable in variables_of(parse_query(query).pattern)})
    events = streams(6, used * 4 + [draw(st.sampled_from(TYPES))])
    found = Batch(
        by_case(query, grouped=kind.startswith(("totals", "nested totals"))),
        tuple(draw(events) for _ in range(STREAMS)),
    )
    if not kind.endswith("in order"):
        return found
    return Batch(found.query, tuple(crowded(one, 3) for one in found.streams), draw(st.sampled_from(ORDERS)))


def by_case(query: str, *, grouped: bool) -> str:
    """The query with `[case]` in WHERE, and in GROUP BY."""
    wanted = {"WHERE": ("WHERE [case]", "WHERE [case] AND ")}
    if grouped:
        wanted["GROUP BY"] = ("GROUP BY case", "GROUP BY case, ")
    lines = query.splitlines()
    for clause, (alone, beside) in wanted.items():
        mine = [line for line in lines if line.startswith(f"{clause} ")]
        rest = [line for line in lines if line not in mine]
        lines = [*rest, mine[0].replace(f"{clause} ", beside, 1) if mine else alone]
    return "\n".join(lines)


def expected_rows(batch: Batch, *, coarse: bool) -> list[Any]:
    """The reference's rows: stream by stream, or of all at once where the totals go over all."""
    tables = [pa.concat_tables(batch.tables())] if coarse else batch.tables()
    found = (tl.run(batch.query, table, engine="reference", order=batch.order) for table in tables)
    return sorted(itertools.chain.from_iterable(rows_of(rows) for rows in found))


def chosen(kind: str) -> list[tuple[Batch, list[Any]]]:
    """Random batches that bind, of which most streams together have rows; the same in every run."""
    coarse = kind.startswith("coarse")

    def with_rows(batch: Batch) -> tuple[Batch, list[Any]] | None:
        try:
            tl.run(batch.query, batch.tables()[0], engine="local", order=batch.order)
            expected = expected_rows(batch, coarse=coarse)
        except (BindError, PlanError):
            return None
        return (batch, expected) if len(expected) >= (1 if coarse else STREAMS // 2) else None

    count = KNOBS[kind][1]
    return first_cases(batches(kind), with_rows, count, seed=11, most=20 * count)


@contextmanager
def arrow_rows(spark: Any, rows: int) -> Iterator[None]:
    before = spark.conf.get(ARROW_ROWS)
    spark.conf.set(ARROW_ROWS, str(rows))
    yield
    spark.conf.set(ARROW_ROWS, before)


def run_on_path(df: Any, batch: Batch, partitions: int | None, path: str) -> pa.Table | None:
    """The rows of a query by some path; None where the query or its data do not allow it."""
    try:
        return detect(df, batch.query, order=batch.order, partitions=partitions, path=path).toArrow()
    except OptionError:
        return None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KNOBS)
def test_spark_equals_reference(kind: str, spark: Any) -> None:
    found = chosen(kind)
    assert len(found) == KNOBS[kind][1]
    for number, (batch, expected) in enumerate(found):
        rows = pa.concat_tables(batch.tables()).to_pylist()
        random.Random(number).shuffle(rows)
        table = pa.Table.from_pylist(rows, schema=batch.tables()[0].schema)
        partitions = (1, 2, 7)[number % 3]
        with arrow_rows(spark, (3, 10_000)[number % 2]):
            df = spark.createDataFrame(table).repartition(partitions)
            for path in ("general",) if kind in BY_MATCH else ("general", "auto", "reduced", "cut"):
                result = run_on_path(df, batch, (None, 7, 1, 2)[number % 4], path)
                assert result is None or rows_of(result) == expected, (path, batch.query)


def test_enough_pairs_are_compared() -> None:
    assert STREAMS * sum(count for _, count in KNOBS.values()) >= 60
