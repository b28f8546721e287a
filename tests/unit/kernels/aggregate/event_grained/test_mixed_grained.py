"""The mixed-grained kernel: the reference on small streams, a plain dynamic program on larger ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.property.amounts import rounds
from tests.property.strategies import SCHEMA, to_table

import trendloom as tl
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Comparison, Expr, Total, Which
from trendloom.expr.vectors import Vector, is_true
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.aggregate import event_grained
from trendloom.kernels.aggregate.event_grained import add_up, quadratic
from trendloom.kernels.aggregate.event_grained.structures import structures
from trendloom.kernels.aggregate.measures import (
    ABSENT,
    EMPTY,
    Addends,
    Linear,
    Spans,
    SpanTotals,
    prepare,
    sortable,
    spans_of,
)
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.columns.numbers import Doubles, Limbs, Numbers, Scaled, Wides, integers, zeros
from trendloom.kernels.contract.aggregates import AggregationSpec, Grain, Measure
from trendloom.kernels.contract.aggregates import Test as Condition
from trendloom.kernels.contract.pattern_spec import Pair, PatternSpec
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.gaps import Gaps
from trendloom.logical.bind import bind
from trendloom.planner.adjacency import adjacent
from trendloom.planner.measures import totals_of
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

Kernel = Callable[[Addends, Spans, Numbers], SpanTotals]


def aggregation(pattern_spec: PatternSpec) -> AggregationSpec:
    """All rules speak of adjacent events: as pairs where they compare columns, else as tests."""
    automaton = Automaton(pattern_spec)
    rules = [adjacent(rule, pattern_spec, automaton) for rule in pattern_spec.scopes[0].rules]
    assert None not in rules
    pairs, tests = [r for r in rules if isinstance(r, Pair)], [r for r in rules if isinstance(r, Condition)]
    return AggregationSpec(pattern_spec, Grain.MIXED, (), tuple(pairs), tuple(tests))


@dataclass(frozen=True)
class Prepared:
    """A query over a stream, ready for the kernel; `totals` are its aggregates in the order of its columns."""

    addends: Addends
    spans: Spans
    keys: Keys
    totals: list[Total]
    least: list[Any]


def prepared(query: str, table: pa.Table) -> Prepared:
    physical = plan_query(bind(parse_query(query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    stream = Stream(table, kinds, table["time"].to_numpy())
    block, keys = build_block(physical, stream)
    spec = aggregation(physical.pattern_spec)
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
    addends = prepare(spec, block, linear, values)
    spans = spans_of(block, spec.pattern_spec.window)
    return Prepared(addends, spans, keys, totals, [one for _, one in values])


def _known(column: Vector) -> Any:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid


def rows(some: Prepared, found: SpanTotals) -> dict[tuple[int, int], list[Any]]:
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


def check_small(seed: int, kernel: Kernel = add_up) -> None:
    dice = random.Random(seed)
    query, table = random_query(dice), random_table(dice, dice.randint(0, 11), dice.choice([4, 8, 12]))
    some = prepared(query, table)
    expected = by_reference(query, table, some)
    name = dice.choice(list(SYSTEMS))
    found = kernel(some.addends, some.spans, like(name))
    assert rows(some, found) == expected, (seed, name, query, table.to_pylist())
    assert not found.spilled.any()


@pytest.mark.parametrize("seed", range(rounds(100)))
def test_small_streams_equal_the_reference(seed: int) -> None:
    check_small(seed)


@pytest.mark.parametrize("seed", range(rounds(20)))
def test_trying_every_predecessor_gives_the_same(seed: int) -> None:
    check_small(seed, quadratic)


@pytest.mark.parametrize("seed", range(rounds(25)))
def test_little_memory_changes_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer lanes, two orders by scanning, tests in tiny parts: the way is another, the answer is not."""
    monkeypatch.setattr(event_grained, "MOST_BYTES", 500 * (seed % 3))
    monkeypatch.setattr(event_grained, "MOST_PAIRS", 3)
    monkeypatch.setattr(event_grained, "MOST_ITEMS", 5)
    monkeypatch.setattr(event_grained, "SLICE", 2)
    check_small(seed)


# --------------------------------------------------------------------------------------- large: a dynamic program


def by_dynamic_program(some: Prepared, span: int) -> tuple[list[int], list[int]]:
    """Linear measures and least values of one span, by the definition of c(e, s), in Python integers."""
    addends, automaton = some.addends, some.addends.automaton
    template = addends.spec.pattern_spec.scopes[0].template
    low, high = int(some.spans.low[span]), int(some.spans.high[span])
    gaps = Gaps(automaton, addends.block)
    fits = [set(members.tolist()) for members in addends.block.members]

    def possible(ways: Any, begin: int, end: int) -> bool:
        return any(all(gaps.threshold(c.scope)[end] < begin for c in way) for way in ways)

    passes = _adjacency(addends)
    tie_start, tie_end = addends.block.tie_start.tolist(), addends.block.tie_end.tolist()
    held: list[dict[int, tuple[list[int], list[int]]]] = [{} for _ in template.position_of]
    total, least = [0] * (1 + addends.linear), [int(ABSENT)] * addends.extremes
    for f in range(low, high):
        for state, position in enumerate(template.position_of):
            if f not in fits[position]:
                continue
            mine, best = [0] * (1 + addends.linear), [int(ABSENT)] * addends.extremes
            for step in automaton.starts[0]:
                if step.target == state and possible(step.ways, low, tie_start[f]):
                    mine[0], best = 1, [int(EMPTY)] * addends.extremes
            for source, steps in enumerate(automaton.moves[0]):
                for step in (step for step in steps if step.target == state):
                    for e, (numbers, values) in held[source].items():
                        free = e < tie_start[f] and possible(step.ways, tie_end[e], tie_start[f])
                        if free and passes(source, step.number, e, f):
                            mine = [a + b for a, b in zip(mine, numbers, strict=True)]
                            best = [min(a, b) for a, b in zip(best, values, strict=True)]
            for m in range(addends.linear):
                weight = 1 if addends.weight_of[m] < 0 else int(addends.weights[addends.weight_of[m], f])
                mine[1 + m] += weight * mine[0] * int(addends.weighs[m, position])
            best = [
                min(value, int(addends.values[x, f])) if mine[0] and addends.valued[x, position] else value
                for x, value in enumerate(best)
            ]
            held[state][f] = (mine, best)
            if possible(template.accepts[state], tie_end[f], high):
                total = [a + b for a, b in zip(total, mine, strict=True)]
                least = [min(a, b) for a, b in zip(least, best, strict=True)]
    return total, least


def _adjacency(addends: Addends) -> Callable[[int, int, int, int], bool]:
    """Whether the pairs and tests of a step from a state let event f follow event e, one pair of events at a time."""
    conditions = [(test.expr, test.steps) for test in addends.spec.tests]
    conditions += [(Comparison(p.operator, _of(p.left, Which.EACH), _of(p.right, Which.NEXT)), p.steps)
                   for p in addends.spec.pairs]  # fmt: skip
    tables = [(steps, _matrix(expr, addends)) for expr, steps in conditions]

    def passes(state: int, step: int, e: int, f: int) -> bool:
        return all(table[e, f] for steps, table in tables if (state, step) in steps)

    return passes


def _of(expr: Expr, which: Which) -> Expr:
    """The expression, said of the earlier or of the later event."""
    if isinstance(expr, Attribute):
        return replace(expr, which=which)
    changed = {f.name: _of(getattr(expr, f.name), which) for f in fields(expr) if f.name in ("left", "right")}
    return replace(expr, **changed) if changed else expr


def _matrix(expr: Expr, addends: Addends) -> Any:
    size = len(addends.block)
    earlier, later = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)

    def leaf(node: Expr) -> Vector:
        assert isinstance(node, Attribute)
        return addends.block.columns[node.column].take(later if node.which in (Which.NEXT, Which.CURRENT) else earlier)

    return is_true(evaluate(expr, leaf)).reshape(size, size)


def check_large(seed: int) -> None:
    dice = random.Random(seed)
    query, table = random_query(dice), random_table(dice, 120, dice.choice([60, 200]))
    query = query.replace("WITHIN 6 SLIDE 2", "WITHIN 60 SLIDE 3").replace("WITHIN 7 SLIDE 1", "WITHIN 30 SLIDE 20")
    some = prepared(query, table)
    chosen = dice.sample(range(len(some.spans)), min(4, len(some.spans)))
    exact, near = add_up(some.addends, some.spans, like("limbs")), add_up(some.addends, some.spans, like("scaled"))
    numbers, close = _plain(exact.numbers), _plain(near.numbers)
    assert not exact.spilled.any()
    for span in chosen:
        total, least = by_dynamic_program(some, span)
        assert numbers[span] == total, (seed, query)
        assert close[span] == pytest.approx(total, rel=1e-9), (seed, query)
        assert exact.least[span].tolist() == near.least[span].tolist() == least, (seed, query)


@pytest.mark.parametrize("seed", range(rounds(25)))
def test_large_streams_equal_the_dynamic_program(seed: int) -> None:
    check_large(seed)


# ------------------------------------------------------------------------------------------------- single properties


def falling(events: int) -> pa.Table:
    return to_table(
        [{"id": t, "type": "A", "time": t, "x": events - t, "y": 0.0, "g": "u", "k": 1} for t in range(events)]
    )


def test_counts_beyond_two_words_are_noted_in_their_span_alone() -> None:
    """130 falling values have 2^130 − 1 falling subsequences; each shorter window fits."""
    query = "RETURN COUNT(*) PATTERN A a+ WHERE a.x > NEXT(a).x WITHIN 130 SLIDE 65"
    some = prepared(query, falling(130))
    found = add_up(some.addends, some.spans, like("wides"))
    assert found.spilled.tolist() == [False, True, False]
    assert [row[0] for row in _plain(found.numbers)][::2] == [2**65 - 1, 2**65 - 1]
    assert _plain(add_up(some.addends, some.spans, like("limbs")).numbers)[1] == [2**130 - 1]


def test_a_window_that_has_ended_does_not_spill_while_others_go_on() -> None:
    query = "RETURN COUNT(*) PATTERN A a+ WHERE a.x > NEXT(a).x WITHIN 120 SLIDE 1"
    some = prepared(query, falling(300))
    found = add_up(some.addends, some.spans, like("wides"))
    assert not found.spilled.any()
    assert max(row[0] for row in _plain(found.numbers)) == 2**120 - 1


def test_scaled_numbers_go_beyond_doubles() -> None:
    some = prepared("RETURN COUNT(*) PATTERN A a+ WHERE a.x >= NEXT(a).x", falling(3000))
    found = add_up(some.addends, some.spans, like("scaled")).numbers
    assert isinstance(found, Scaled)
    assert math.log2(found.mantissa[0, 0]) + 512 * found.exponent[0, 0] == pytest.approx(3000)


@pytest.mark.parametrize(("condition", "group"), [("a.g = NEXT(c).g", "v"), ("a.g != NEXT(c).g", "u")])
def test_small_counts_survive_beside_infinite_ones(condition: str, group: str) -> None:
    """Chains of 1 100 values in group u overflow doubles; those of 3 values in group v must not notice."""
    events = [("A", t, t, "u") for t in range(1100)] + [("A", 2000 + t, t, "v") for t in range(3)]
    events += [("B", 3000, 0, group)]
    names = ("type", "time", "x", "g")
    table = to_table([{"id": i, "y": 0.0, "k": 1} | dict(zip(names, e, strict=True)) for i, e in enumerate(events)])
    chains = "a.g = NEXT(a).g AND a.x < NEXT(a).x"
    some = prepared(f"RETURN COUNT(*) PATTERN SEQ(A a+, B c) WHERE {chains} AND {condition}", table)
    assert _plain(add_up(some.addends, some.spans, like("doubles")).numbers) == [[7.0]]


@pytest.mark.parametrize(
    ("where", "structure"),
    [
        ("a.x < 3", "sum"),
        ("a.x = NEXT(a).x", "hash"),
        ("a.x = NEXT(a).x AND a.g = NEXT(a).g", "hash"),
        ("a.x >= NEXT(a).x", "fenwick"),
        ("a.x != NEXT(a).x", "fenwick"),
        ("a.x != NEXT(a).x AND a.g = NEXT(a).g", "hash of fenwicks"),
        ("a.x < NEXT(a).x AND a.y > NEXT(a).y", "two-level fenwick"),
        ("a.x < NEXT(a).x AND a.y > NEXT(a).y AND a.g = NEXT(a).g", "two-level fenwick"),
        ("a.x < NEXT(a).x AND a.y > NEXT(a).y AND a.g != NEXT(a).g", "scan"),
        ("abs(a.x - NEXT(a).x) < 2", "scan"),
    ],
)
def test_the_structure_follows_from_the_predicates(where: str, structure: str) -> None:
    pattern_spec = plan_query(bind(parse_query(f"RETURN COUNT(*) PATTERN A a+ WHERE {where}"), SCHEMA)).pattern_spec
    assert [name for _, _, name in structures(aggregation(pattern_spec), Automaton(pattern_spec))] == [structure]


def test_no_spans_no_results() -> None:
    some = prepared("RETURN COUNT(*), MIN(a.x) PATTERN A a+ WHERE a.x < NEXT(a).x", to_table([]))
    found = add_up(some.addends, some.spans, like("wides"))
    assert (len(found.spilled), found.least.shape) == (0, (0, 1))
