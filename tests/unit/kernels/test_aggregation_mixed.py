"""The mixed-grained kernel against the reference on small streams, and against a plain dynamic program on larger ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.property.strategies import SCHEMA, to_table

import trendloom as tl
from trendloom.engines.events import Stream, build_block
from trendloom.physical.aggregation import totals_of
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, Total, Which
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.aggregation import mixed_grained, truths
from trendloom.kernels.aggregation.job import ABSENT, EMPTY, Found, Job, Linear, Spans, prepare, sortable
from trendloom.kernels.aggregation.mixed_grained import quadratic, sweep
from trendloom.kernels.aggregation.spans import spans_of
from trendloom.kernels.aggregation.spec import Aggregation, Grain, Measure
from trendloom.kernels.aggregation.spec import Test as Condition
from trendloom.kernels.aggregation.structures import structures
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.columns.numbers import Doubles, Limbs, Numbers, Scaled, Wides, integers, zeros
from trendloom.kernels.detection.machine import Machine
from trendloom.kernels.detection.spec import Detection, Pair
from trendloom.lang.parser import parse_query
from trendloom.model.schema import Kind
from trendloom.physical.adjacent import adjacent
from trendloom.physical.plan import plan_physically
from trendloom.plan.bind import bind

Kernel = Callable[[Job, Spans, Numbers], Found]


def aggregation(detection: Detection) -> Aggregation:
    """All rules speak of adjacent events: as pairs where they compare columns, else as tests."""
    machine = Machine(detection)
    rules = [adjacent(rule, detection, machine)[0] for rule in detection.scopes[0].rules]
    assert None not in rules
    pairs, tests = [r for r in rules if isinstance(r, Pair)], [r for r in rules if isinstance(r, Condition)]
    return Aggregation(detection, Grain.MIXED, (), tuple(pairs), tuple(tests))


@dataclass(frozen=True)
class Prepared:
    """A query over a stream, ready for the kernel; `totals` are its aggregates in the order of its columns."""

    job: Job
    spans: Spans
    keys: Keys
    totals: list[Total]
    least: list[Any]


def prepared(query: str, table: pa.Table) -> Prepared:
    physical = plan_physically(bind(parse_query(query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    stream = Stream(table, kinds, table["time"].to_numpy())
    block, keys = build_block(physical, stream)
    spec = aggregation(physical.choice.detection)
    linear, values = [], []
    totals = totals_of(physical.plan)
    for total in totals:
        if total.positions is None:
            continue
        if total.function == "count":
            linear.append(Linear(total.positions, None))
            continue
        assert total.column is not None
        column = stream.vector(total.column).take(block.row)
        if total.function == "sum":
            linear.append(Linear(total.positions, np.where(_known(column), column.values, 0)))
        else:
            measure = Measure(total.function, total.function, total.positions, total.column, column.kind)
            values.append((measure, sortable(measure, column)))
    job = prepare(spec, block, linear, values)
    spans = spans_of(block, spec.detection.window)
    return Prepared(job, spans, keys, totals, [one for _, one in values])


def _known(column: Vector) -> Any:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid


def rows(some: Prepared, found: Found) -> dict[tuple[int, int], list[Any]]:
    """Results by key and window: the aggregates of the query in order; spans without a match have none."""
    numbers = _plain(found.numbers)
    least = [one.restore(found.least[:, x]).to_list() for x, one in enumerate(some.least)]
    answer = {}
    for span in range(len(some.spans)):
        if not numbers[span][0]:
            continue
        linear, extremes = iter(numbers[span][1:]), iter([column[span] for column in least])
        row = []
        for total in some.totals:
            if total.positions is None:
                row.append(numbers[span][0])
            else:
                row.append(next(extremes) if total.function in ("min", "max") else next(linear))
        answer[int(some.spans.key[span]), int(some.spans.start[span])] = row
    return answer


def _plain(numbers: Numbers) -> list[list[Any]]:
    if isinstance(numbers, Wides | Limbs):
        lanes = numbers.words.shape[1] if isinstance(numbers, Limbs) else numbers.low.shape[1]
        return [list(row) for row in zip(*(integers(numbers, lane).tolist() for lane in range(lanes)), strict=True)]
    if isinstance(numbers, Doubles):
        return numbers.value.tolist()
    assert isinstance(numbers, Scaled)
    whole = [[int(m) << (512 * int(e)) for m, e in zip(*row, strict=True)] for row in zip(*numbers, strict=True)]
    return whole


def by_reference(query: str, table: pa.Table, some: Prepared) -> dict[tuple[int, int], list[Any]]:
    code = {table["k"][row].as_py(): key for key, row in enumerate(some.keys.rows.tolist())} if "[k]" in query else {}
    found = {}
    for row in tl.run(query, table, engine="reference").to_pylist():
        key, start = code.get(row.pop("k", None), 0), row.pop("window_start", 0)
        row.pop("window_end", None)
        # a SUM of nothing is NULL; the kernel says 0 and leaves that to whoever counts the values
        found[key, start] = [0 if v is None and n.startswith("SUM") else v for n, v in row.items()]
    return found


SYSTEMS = {"doubles": (Doubles, 2), "wides": (Wides, 2), "limbs": (Limbs, 3), "scaled": (Scaled, 2)}


def like(name: str) -> Numbers:
    system, words = SYSTEMS[name]
    return zeros(system, 1, 1, words)


# --------------------------------------------------------------------------------------------------- random cases

PATTERNS = {
    "A a+": ["a"],
    "SEQ(A a+, B b)": ["a", "b"],
    "(SEQ(A a+, B b))+": ["a", "b"],
    "SEQ(A a, B b+, C c)": ["a", "b", "c"],
    "SEQ(A a+, NOT N, B b)": ["a", "b"],
    "SEQ(NOT N, A a+)": ["a"],
    "SEQ(A a+, NOT N)": ["a"],
    "(SEQ(A a, NOT N, B b))+": ["a", "b"],
    "SEQ(A a+, NOT SEQ(N, M), B b)": ["a", "b"],
    "SEQ(NOT SEQ(N, M), A a+, NOT M)": ["a"],
    "SEQ(A a, NOT N, B b?, NOT M, C c)": ["a", "b", "c"],
    "(SEQ(A a, SEQ(NOT N, B b, NOT M)?, C c))+": ["a", "b", "c"],
    "SEQ(A a+, OR(B b, C c))": ["a", "b", "c"],
    "SEQ(A a+, NOT SEQ(N n, M m), B b)": ["a", "b"],
}
SIDES = ["{0}.x {1} NEXT({2}).x", "{0}.y {1} NEXT({2}).y", "{0}.x + 1 {1} NEXT({2}).y", "{0}.g {1} NEXT({2}).g"]
TESTS = ["abs({0}.x - NEXT({2}).x) < 2", "{0}.x + NEXT({2}).y > 1", "({0}.x = 1 OR NEXT({2}).x = 2)"]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


def random_query(dice: random.Random) -> str:
    pattern = dice.choice(list(PATTERNS))
    names = PATTERNS[pattern]
    where = []
    for _ in range(dice.choice([0, 1, 1, 2, 2, 3, 4])):
        text = dice.choice(SIDES * 3 + TESTS)
        where.append(text.format(dice.choice(names), dice.choice(OPERATORS), dice.choice(names)))
    if " n, " in pattern:
        where.append("n.x < m.x")
    keyed = dice.random() < 0.4
    where += ["[k]"] if keyed else []
    v = dice.choice(names)
    clauses = [
        f"RETURN {'k, ' if keyed else ''}COUNT(*), COUNT({v}), SUM({v}.x), MIN({v}.x), MAX({v}.y)",
        f"PATTERN {pattern}",
        f"WHERE {' AND '.join(where)}" if where else "",
        "GROUP BY k" if keyed else "",
        dice.choice(["", "", "WITHIN 6 SLIDE 2", "WITHIN 5 SLIDE 5", "WITHIN 7 SLIDE 1"]),
    ]
    return "\n".join(clause for clause in clauses if clause)


def random_table(dice: random.Random, events: int, span: int) -> pa.Table:
    return to_table(
        [
            {
                "id": number,
                "type": dice.choice("AAABBCNM"),
                "time": dice.randint(-2, span),
                "x": dice.choice([0, 1, 2, 3, 4, -1, None]),
                "y": dice.choice([-1.5, 0.0, 0.5, 1.0, 2.0, 3.0, None]),
                "g": dice.choice(["u", "v", "w", None]),
                "k": dice.choice([1, 1, 2, None]),
            }
            for number in range(events)
        ]
    )


def check_small(seed: int, kernel: Kernel = sweep) -> None:
    dice = random.Random(seed)
    query, table = random_query(dice), random_table(dice, dice.randint(0, 11), dice.choice([4, 8, 12]))
    some = prepared(query, table)
    expected = by_reference(query, table, some)
    name = dice.choice(list(SYSTEMS))
    found = kernel(some.job, some.spans, like(name))
    assert rows(some, found) == expected, (seed, name, query, table.to_pylist())
    assert not found.spilled.any()


@pytest.mark.parametrize("seed", range(250))
def test_small_streams_equal_the_reference(seed: int) -> None:
    check_small(seed)


@pytest.mark.parametrize("seed", range(40))
def test_trying_every_predecessor_gives_the_same(seed: int) -> None:
    check_small(seed, quadratic)
