"""Pattern-grained aggregation equals the definition: every pattern, predicate and window, in every number system."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.property.amounts import MORE

import trendloom
from trendloom.kernels.aggregate import pattern_grained
from trendloom.kernels.aggregate.measures import Addends, Linear, Sortable, SpanTotals, prepare, sortable, spans_of
from trendloom.kernels.columns.numbers import Doubles, Limbs, Scaled, Wides, integers, zeros
from trendloom.kernels.contract.aggregates import AggregationSpec, Grain, Measure
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.planner.adjacency import pairs_of
from trendloom.planner.measures import measures_of
from trendloom.planner.plan import Physical
from trendloom.planner.request import Refusal
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import load, queries_of

NOTHING = frozenset[Any]()
SYSTEMS = {"doubles": Doubles, "wides": Wides, "limbs": Limbs, "scaled": Scaled}

PATTERNS = (
    "A+",
    "A",
    "SEQ(A+, B)",
    "(SEQ(A+, B))+",
    "SEQ(A, B?, C)",
    "SEQ(A+, B*, C)",
    "SEQ(A+, NOT N, B)",
    "SEQ(NOT N, A+)",
    "SEQ(A+, NOT N)",
    "(SEQ(A+, NOT N))+",
    "SEQ(NOT SEQ(N, C), A+, NOT SEQ(C, N))",
    "SEQ(SEQ(NOT N, B)?, A+)",
    "SEQ(A+, NOT SEQ(N, C), B+)",
    "SEQ(A, B, A)",
    "(A OR B)+",
    "SEQ(A{1,3}, B)",
)
CONDITIONS = (
    (),
    ("A.x < NEXT(A).x",),
    ("A.x <= NEXT(A).x",),
    ("A.x > NEXT(A).y",),
    ("A.x = NEXT(A).x",),
    ("A.x != NEXT(A).y",),
    ("A.x <= NEXT(B).y",),
    ("A.x = NEXT(B).x", "A.x < NEXT(A).y"),
    ("A.x <= NEXT(A).x", "A.y != NEXT(A).y"),
    ("A.x < NEXT(A).x", "A.x > NEXT(B).x", "B.x <= NEXT(A).x", "A.y >= NEXT(C).x"),
)
WINDOWS = ("", "WITHIN 6 SLIDE 2", "WITHIN 5", "WITHIN 9 SLIDE 1")
TOTALS = "COUNT(*), COUNT(A), COUNT(A.x), SUM(A.x), MIN(A.x), MAX(A.y)"


def query_of(pattern: str, semantics: str, conditions: tuple[str, ...], window: str) -> str:
    bound = set(re.sub(r"NOT (SEQ\(.*?\)|N)", "", pattern))
    usable = (text for text in conditions if set(re.findall(r"\b[ABC]\b", text)) <= bound)
    where = " AND ".join(("[k]", *usable))
    return f"RETURN k, {TOTALS} PATTERN {pattern} SEMANTICS {semantics} WHERE {where} GROUP BY k {window}"


def events_of(chance: random.Random, size: int) -> pa.Table:
    """Ties, NULLs, several keys, and types that the pattern does not know."""
    time, rows = -4, []
    for _ in range(size):
        time += chance.choice((0, 1, 1, 1, 2))
        x, y = chance.choice((None, 0, 1, 1, 2, 3, -2)), chance.choice((None, 0.5, 1.0, 2.0, 3.0, -1.5))
        rows.append({"time": time, "type": chance.choice("AAAABBCNX"), "k": chance.choice((1, 1, 2)), "x": x, "y": y})
    chance.shuffle(rows)
    kinds = {"time": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64(), "y": pa.float64()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def without_open_nots(pattern_spec: PatternSpec) -> PatternSpec:
    """Leading and trailing NOTs change nothing about which rules compare neighbours."""
    first = pattern_spec.scopes[0]
    template = replace(
        first.template,
        starts=tuple(dict.fromkeys(replace(edge, crossings=NOTHING) for edge in first.template.starts)),
        accepts=tuple((NOTHING,) if ways else () for ways in first.template.accepts),
    )
    return replace(pattern_spec, scopes=(replace(first, template=template), *pattern_spec.scopes[1:]))


def addends_of(
    query: str, table: pa.Table
) -> tuple[Addends, list[tuple[Measure, Sortable]], list[Measure], Any] | None:
    """What a query adds up, or None where a run does not depend on its last event alone."""
    events = load(table, Options())
    physical = plan_query(bind(queries_of(query)[0], events.schema))
    pattern_spec = physical.pattern_spec
    pairs = pairs_of(without_open_nots(pattern_spec))
    if isinstance(pairs, Refusal):
        return None
    stream = stream_of(physical, events)
    block, keys = build_block(physical, stream)
    measures = tuple(Measure(m.name, m.function, m.positions, m.column, m.kind) for m in measures_of(physical.plan))
    linear = [m for m in measures if m.function in ("count", "sum")]
    extremes = [
        (m, sortable(m, stream.vector(m.column or "").take(block.row)))
        for m in measures
        if m.function in ("min", "max")
    ]
    spec = AggregationSpec(pattern_spec, Grain.PATTERN, measures, pairs)
    addends = prepare(spec, block, [linear_of(m, stream, block.row) for m in linear], extremes)
    return addends, extremes, linear, [stream.vector("k").values[row] for row in keys.rows]


def stream_of(physical: Physical, events: Any) -> Stream:
    plan = physical.plan
    kinds = {column.name: column.kind for column in plan.schema.columns}
    table = events.table.select(list(plan.scan.columns))
    return Stream(table, kinds, events.ticks, {plan.schema.type: events.types})


def linear_of(measure: Measure, stream: Stream, row: Any) -> Linear:
    assert measure.positions is not None
    if measure.column is None:
        return Linear(measure.positions, None)
    vector = stream.vector(measure.column).take(row)
    valid = np.ones(len(row), np.bool_) if vector.valid is None else vector.valid
    if measure.function == "count":
        return Linear(measure.positions, valid.astype(np.int64))
    return Linear(measure.positions, np.where(valid, vector.values, 0))


def numbers_of(found: SpanTotals) -> list[list[Any]]:
    if isinstance(found.numbers, Doubles):
        return found.numbers.value.tolist()  # type: ignore[no-any-return]
    if isinstance(found.numbers, Scaled):
        mantissa, exponent = found.numbers.mantissa.tolist(), found.numbers.exponent.tolist()
        return [
            [m * 2.0 ** (512 * x) for m, x in zip(*rows, strict=True)] for rows in zip(mantissa, exponent, strict=True)
        ]
    lanes = [integers(found.numbers, lane).tolist() for lane in range(found.numbers[0].shape[1])]
    return [list(row) for row in zip(*lanes, strict=True)]


Rows = dict[tuple[int, int], tuple[Any, ...]]


def added_up(query: str, table: pa.Table, system: Any) -> Rows | None:
    """By key and start of window: the totals in the order of TOTALS."""
    prepared = addends_of(query, table)
    if prepared is None:
        return None
    addends, extremes, linear, key_values = prepared
    spans = spans_of(addends.block, addends.spec.pattern_spec.window)
    found = pattern_grained.add_up(addends, spans, zeros(system, 1, 1, 3))
    assert not found.spilled.any()
    ends = [one.restore(found.least[:, x]) for x, (_, one) in enumerate(extremes)]
    rows: Rows = {}
    for span, numbers in enumerate(numbers_of(found)):
        if numbers[0] == 0:
            assert (found.least[span] == 2**63 - 1).all()
            continue
        of = {m.name: n for m, n in zip(linear, numbers[1:], strict=True)}
        count, values, added = (of[name] for name in _names(linear))
        least = [e.values[span] if e.valid is None or e.valid[span] else None for e in ends]
        window = int(spans.start[span])
        rows[int(key_values[spans.key[span]]), window] = (
            numbers[0], count, values, added if values else None, *least
        )  # fmt: skip
    return rows


def _names(linear: list[Measure]) -> Iterator[str]:
    yield next(m.name for m in linear if m.function == "count" and m.column is None)
    yield next(m.name for m in linear if m.function == "count" and m.column == "x")
    yield next(m.name for m in linear if m.function == "sum")


def answered(query: str, table: pa.Table) -> Rows:
    """The same by the definition."""
    rows: Rows = {}
    for row in trendloom.run(query, table, engine="reference").to_pylist():
        key, window, _ = row.pop("k"), row.pop("window_start", 0), row.pop("window_end", None)
        rows[key, window] = tuple(row.values())
    return rows


def enumerated(query: str, table: pa.Table) -> Rows:
    """The same by a kernel that finds every match, for streams too long for the definition."""
    prepared = addends_of(query, table)
    assert prepared is not None
    addends, _, _, key_values = prepared
    block = addends.block
    x, y = (table[name].take(pa.array(block.row)).to_pylist() for name in "xy")
    places = addends.spec.pattern_spec.places
    bound: dict[tuple[int, int], list[list[int]]] = {}
    for matches in enumerate_matches(addends.spec.pattern_spec, block):
        for match, (begin, end) in enumerate(pairwise(matches.offsets.tolist())):
            window = 0 if matches.window_start is None else int(matches.window_start[match])
            pairs = zip(matches.events[begin:end].tolist(), matches.positions[begin:end].tolist(), strict=True)
            of_a = [event for event, position in pairs if places[position].type == "A"]
            bound.setdefault((int(key_values[block.key[matches.events[begin]]]), window), []).append(of_a)
    return {row: _totals(found, x, y) for row, found in bound.items()}


def _totals(matches: list[list[int]], x: list[int | None], y: list[float | None]) -> tuple[Any, ...]:
    events = [event for match in matches for event in match]
    xs, ys = ([value for value in (column[e] for e in events) if value is not None] for column in (x, y))
    return len(matches), len(events), len(xs), sum(xs) if xs else None, min(xs, default=None), max(ys, default=None)


def check(query: str, table: pa.Table, system: Any, answer: Callable[[str, pa.Table], Rows] = answered) -> bool:
    found = added_up(query, table, system)
    if found is None:
        return False
    expected = answer(query, table)
    assert found == expected, f"{query}\n{table.sort_by('time').to_pylist()}\n{found}\n{expected}"
    return bool(expected)


SEMANTICS = ("skip-till-next-match", "contiguous")


def some_conditions(start: int) -> list[tuple[int, tuple[str, ...]]]:
    """Every other one, numbered; all of them in a deep run."""
    return list(enumerate(CONDITIONS if MORE else CONDITIONS[start % 2 :: 2]))


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_match_counts_once(pattern: str, semantics: str) -> None:
    chance = random.Random(f"{pattern} {semantics}")
    for number, conditions in some_conditions(PATTERNS.index(pattern)):
        table = events_of(chance, chance.randrange(4, 22))
        query = query_of(pattern, semantics, conditions, WINDOWS[number % len(WINDOWS)])
        check(query, table, list(SYSTEMS.values())[number % 4])


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("pattern", ["A+", "(SEQ(A+, B))+", "(A OR B)+", "SEQ(NOT N, A+, B?)"])
def test_longer_streams_equal_enumeration(pattern: str, semantics: str) -> None:
    chance = random.Random(f"long {pattern} {semantics}")
    compared = 0
    for number, conditions in some_conditions(len(pattern)):
        query = query_of(pattern, semantics, conditions, WINDOWS[number % len(WINDOWS)])
        system = list(SYSTEMS.values())[number % len(SYSTEMS)]
        compared += check(query, events_of(chance, 60), system, enumerated)
    assert compared >= 3


@pytest.mark.parametrize("condition", [c[0] for c in CONDITIONS if len(c) == 1 and "B" not in c[0]])
def test_a_table_of_successors_gives_the_same(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(condition)
    for pattern in ("A+", "(SEQ(A+, B))+", "SEQ(A{1,3}, B)"):
        query = query_of(pattern, SEMANTICS[0], (condition,), "WITHIN 9 SLIDE 1")
        table = events_of(chance, 200)
        found = added_up(query, table, Wides)
        with monkeypatch.context() as patch:
            patch.setattr(pattern_grained, "is_simple", lambda addends: False)
            assert added_up(query, table, Wides) == found
        assert found


@pytest.mark.parametrize("times", [(1, 2, 2, 3), (1, 1, 2, 3), (1, 2, 3, 3), (1, 1, 2, 2), (1, 2, 2, 2)])
def test_single_events_and_ties_follow_each_other(times: tuple[int, ...]) -> None:
    query = query_of("SEQ(A+, B?)", "contiguous", ("A.x < NEXT(A).x",), "")
    for types in ("AAAA", "AAXB", "AXAB", "XAAB"):
        columns = {"time": times, "type": list(types), "k": [1] * 4, "x": [1, 2, 3, 4], "y": [0.5] * 4}
        assert check(query, pa.table(columns), Doubles)


def trends(values: list[int], holds: Any) -> tuple[int, int]:
    """COUNT(*) and SUM(A.x) of A+ under skip-till-next-match, event by event, without ties."""
    runs, sums = [1] * len(values), [0] * len(values)
    for e, value in enumerate(values):
        sums[e] += value * runs[e]
        following = next((f for f in range(e + 1, len(values)) if holds(value, values[f])), None)
        if following is not None:
            runs[following] += runs[e]
            sums[following] += sums[e]
    return sum(runs), sum(sums)


@pytest.mark.parametrize(
    ("operator", "holds"),
    [("<", int.__lt__), (">=", int.__ge__), ("=", int.__eq__), ("!=", int.__ne__)],
)
@pytest.mark.parametrize("order", ["mixed", "falling", "repeated"])
def test_many_runs_wait_at_once(operator: str, holds: Any, order: str) -> None:
    size, chance = 600, random.Random(operator)
    values = {
        "mixed": [chance.randrange(10**6) for _ in range(size)],
        "falling": [size - number for number in range(size)],
        "repeated": [number % 200 for number in range(size)],
    }[order]
    columns = {"time": range(size), "type": ["A"] * size, "k": [1] * size, "x": values, "y": [0.5] * size}
    query = query_of("A+", SEMANTICS[0], (f"A.x {operator} NEXT(A).x",), "")
    found = added_up(query, pa.table(columns), Limbs)
    assert found is not None
    assert found[1, 0][0] == trends(values, holds)[0]
    assert found[1, 0][3] == trends(values, holds)[1]


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_numbers_of_any_size(semantics: str) -> None:
    """Two events at each of 300 times: the number of runs doubles each time, far beyond two words."""
    times = [number // 2 for number in range(600)]
    columns = {"time": times, "type": ["A"] * 600, "k": [1] * 600, "x": times, "y": [0.5] * 600}
    prepared = addends_of(query_of("A+", semantics, ("A.x < NEXT(A).x",), ""), pa.table(columns))
    assert prepared is not None
    addends = prepared[0]
    spans = spans_of(addends.block, addends.spec.pattern_spec.window)
    runs, matches = 0, 0
    for _ in range(300):
        runs = 2 * (1 + runs)
        matches += runs
    assert pattern_grained.add_up(addends, spans, zeros(Wides, 1, 1)).spilled.all()
    found = pattern_grained.add_up(addends, spans, zeros(Limbs, 1, 1, 6))
    assert not found.spilled.any()
    assert numbers_of(found)[0][0] == matches
    scaled = pattern_grained.add_up(addends, spans, zeros(Scaled, 1, 1)).numbers
    assert isinstance(scaled, Scaled)
    logarithm = math.log2(scaled.mantissa[0, 0]) + 512 * int(scaled.exponent[0, 0])
    assert math.isclose(logarithm, math.log2(matches), rel_tol=1e-12)


def test_only_the_windows_that_overflow_are_told() -> None:
    """A first window with few events beside one with many: both are lanes of one pass."""
    times = [0, 0, 1, 1, *(10 + number // 2 for number in range(300))]
    size = len(times)
    columns = {"time": times, "type": ["A"] * size, "k": [1] * size, "x": times, "y": [0.5] * size}
    query = query_of("A+", SEMANTICS[0], ("A.x < NEXT(A).x",), "WITHIN 200 SLIDE 100")
    prepared = addends_of(query, pa.table(columns))
    assert prepared is not None
    addends = prepared[0]
    spans = spans_of(addends.block, addends.spec.pattern_spec.window)
    found = pattern_grained.add_up(addends, spans, zeros(Wides, 1, 1))
    assert dict(zip(spans.start.tolist(), found.spilled.tolist(), strict=True)) == {-100: False, 0: True, 100: False}


def test_no_spans() -> None:
    prepared = addends_of(query_of("A+", "contiguous", (), ""), events_of(random.Random(1), 5))
    assert prepared is not None
    addends = prepared[0]
    spans = spans_of(addends.block, addends.spec.pattern_spec.window).take(np.zeros(0, np.int64))
    assert len(pattern_grained.add_up(addends, spans, zeros(Doubles, 1, 1)).spilled) == 0
