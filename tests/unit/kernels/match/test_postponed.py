"""Postponing: phase 1 is close to linear and right, phase 2 meets no dead end and runs no further than it is asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from tests.property.amounts import amount, thorough
from tests.property.strategies import ANY, ARROW, SCHEMA, Case, Knobs, cases, to_table

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import join
from trendloom.kernels.contract.pattern_spec import Pair
from trendloom.kernels.match.any import (
    CHUNK,
    Construction,
    Postponed,
    PostponedKernel,
    construct_matches,
    share_matching,
)
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.matching.reachability import NEVER, accepting, earliest_ends, end_bounds
from trendloom.kernels.matching.tables import fits_at, fitting_bits, possible
from trendloom.logical.bind import bind
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.planning import plan_query

Array = np.ndarray


def prepared(query: str, table: pa.Table) -> tuple[Physical, Block]:
    physical = plan_query(bind(parse_query(query), SCHEMA))
    kinds = {column.name: column.kind for column in SCHEMA.columns}
    return physical, build_block(physical, Stream(table, kinds, table["time"].to_numpy()))[0]


def pairs_of(physical: Physical) -> tuple[Pair, ...]:
    assert isinstance(physical.kernel, PostponedKernel)
    return physical.kernel.pairs


def shared(query: str, table: pa.Table) -> Postponed:
    physical, block = prepared(query, table)
    return share_matching(physical.pattern_spec, pairs_of(physical), block)


def stream(types: str, x: Array | None = None, y: Array | None = None) -> pa.Table:
    size = len(types)
    columns = {
        "id": np.arange(size),
        "type": list(types),
        "time": np.arange(size),
        "x": np.zeros(size, np.int64) if x is None else x,
        "y": np.zeros(size) if y is None else y,
        "g": ["u"] * size,
        "k": np.ones(size, np.int64),
    }
    return pa.table(columns).cast(ARROW)


def random_stream(size: int, weights: tuple[float, ...] = (0.1, 0.8, 0.1), seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    types = "".join(random.choice(list("ABC"), size, p=weights))
    return stream(types, random.integers(0, 1000, size), random.random(size))


# ------------------------------------------------------------------------------------------------- phase 1


def by_trial(found: Postponed) -> Array:
    """The earliest ends, by trying every two events."""
    automaton, block, moves, checks = found.automaton, found.block, found.tables.moves, found.tables.checks
    positions, accepts, fits = automaton.spec.scopes[0].template.position_of, accepting(automaton), fitting_bits(block)
    ends = np.full((len(positions), len(block)), NEVER, np.int64)
    for e in range(len(block) - 1, -1, -1):
        for state, position in enumerate(positions):
            if not fits_at(fits[e], position):
                continue
            if accepts[state]:
                ends[state, e] = e
                continue
            for move in range(moves.begin[state], moves.begin[state + 1]):
                for f in range(block.tie_end[e], block.key_starts[block.key[e] + 1]):
                    if fits_at(fits[f], moves.position[move]) and possible(e, f, move, checks):
                        ends[state, e] = min(ends[state, e], ends[moves.target[move], f])
    return ends


def test_earliest_ends_are_those_found_by_trial() -> None:
    knobs = Knobs(
        semantics=(ANY,), outputs=("trends",), classes=("adjacent", "previous"), conjunction=False, predicates=False
    )
    exact = 0

    @thorough(amount(60))
    @given(cases(knobs))
    def compare(case: Case) -> None:
        nonlocal exact
        try:
            physical, block = prepared(case.query, to_table(case.events))
        except (BindError, PlanError):
            assume(False)
            raise
        assume(isinstance(physical.kernel, PostponedKernel) and len(block))
        found = share_matching(physical.pattern_spec, pairs_of(physical), block)
        tables = found.tables
        ends = earliest_ends(found.automaton, block, tables.moves, tables.checks, tables.cuts).ends
        expected, bounds = by_trial(found), end_bounds(found.automaton, block)
        assert bounds is not None
        assert (bounds <= ends).all(), case.query
        assert (ends == expected).all() if found.exact else (ends <= expected).all(), case.query
        exact += found.exact and bool((expected < NEVER).any())

    compare()
    assert exact >= 20


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_operator_finds_the_earliest_end(operator: str, seed: int) -> None:
    """Few values, many ways: the nearest event that passes is often not the one with the earliest end."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 3, 60)
    table = stream("".join(random.choice(list("ABC"), 60)), x, x.astype(float))
    query = f"PATTERN SEQ(A a, B b, C c) WHERE a.x {operator} NEXT(b).y AND b.x {operator} NEXT(c).x"
    found = shared(query, table)
    tables = found.tables
    ends = earliest_ends(found.automaton, found.block, tables.moves, tables.checks, tables.cuts).ends
    assert found.exact
    assert (ends == by_trial(found)).all()


@pytest.mark.parametrize(
    ("query", "growth"),
    [
        ("PATTERN SEQ(A, B+, C)", 2.01),
        ("PATTERN SEQ(A, B+ b[], C) WHERE b[i].x = b[i-1].x WITHIN 100", 2.01),
        ("PATTERN SEQ(A, NOT B, C)", 2.2),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x >= b[i-1].x AND b.y < NEXT(c).y", 2.25),
    ],
)
def test_twice_the_events_are_twice_the_work(query: str, growth: float) -> None:
    small, large = (shared(query, random_stream(size)).work for size in (20_000, 40_000))
    assert 1.9 < large / small < growth


# ------------------------------------------------------------------------------------------------- phase 2


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A, B+, C) WITHIN 9",
        "PATTERN SEQ(A, B+ b[], C) WHERE b[i].x > b[i-1].x WITHIN 15",
        "PATTERN SEQ(A, B+ b[], C) WHERE b[i].x != b[i-1].x WITHIN 8 SLIDE 4",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE b.y < NEXT(c).y AND a.x >= NEXT(b).x WITHIN 9",
        "PATTERN SEQ(B+, NOT A, C) WITHIN 8",
    ],
)
def test_no_dead_ends(query: str) -> None:
    """With exact ends every partial match that is entered is part of a match."""
    found = shared(query, random_stream(3000))
    construction = Construction(found)
    matches = join(list(construction))
    assert found.exact
    assert construction.dead_ends == 0
    assert 0 < construction.visited <= len(matches.events)


def test_a_dead_end_is_entered_once() -> None:
    """No B passes both predicates to a C. Ends are only bounds here, and 2^20 partial matches would lead nowhere."""
    x = np.r_[0, np.arange(1, 21), 5, 100]
    y = np.r_[0.0, np.arange(1.0, 21.0), 100.0, 0.5]
    found = shared(
        "PATTERN SEQ(A a, B+ b[], C c) WHERE b.x < NEXT(c).x AND b.y < NEXT(c).y", stream("A" + "B" * 20 + "CC", x, y)
    )
    construction = Construction(found)
    matches = join(list(construction))
    assert not found.exact
    assert len(matches) == 2**4 - 1  # b1 to b4 lie below the first C, none below the second
    assert construction.dead_ends <= 20
    assert construction.visited <= len(matches.events) + 20


def test_whoever_wants_few_gets_few() -> None:
    """Forty events have 2^40 trends. The first chunk is small, and nothing is built beyond it."""
    construction = Construction(shared("PATTERN A+", stream("A" * 40)))
    first = next(iter(construction))
    assert 0 < len(first.events) <= first_chunk(40, CHUNK)
    assert construction.visited <= first_chunk(40, CHUNK) <= 200
    assert tl.run("PATTERN A+", stream("A" * 40), engine="local", limit=3).num_rows == 3


def test_chunks_double() -> None:
    first = first_chunk(40, CHUNK)
    found = iter(Construction(shared("PATTERN A+", stream("A" * 40)), chunk=4 * first))
    sizes = [len(next(found).events) for _ in range(5)]
    assert all(size <= bound * first for size, bound in zip(sizes, (1, 2, 4, 4, 4), strict=True))
    assert sizes[-1] > 3 * first


def test_a_match_longer_than_a_chunk() -> None:
    physical, block = prepared("PATTERN A+ a[] WHERE a.x < NEXT(a).x", stream("A" * 12, np.arange(12)))
    pieces = list(construct_matches(physical.pattern_spec, pairs_of(physical), block, chunk=5))
    assert sum(map(len, pieces)) == 2**12 - 1
    assert max(len(piece.events) for piece in pieces) <= 13


def test_many_windows_do_not_widen_chunks() -> None:
    """Every match lies in up to a hundred windows; a chunk of matches is handed out in parts."""
    physical, block = prepared("PATTERN SEQ(A, B) WITHIN 100 SLIDE 1", stream("AB" * 100))
    pieces = list(construct_matches(physical.pattern_spec, pairs_of(physical), block, chunk=1000))
    assert max(len(piece.events) for piece in pieces) <= 1000
    assert sum(map(len, pieces)) == sum(100 - d for a in range(0, 200, 2) for d in range(1, min(100, 200 - a), 2))


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_long_walks_by_order(operator: str) -> None:
    """Trees of several levels: pairs of 5000 events, few of which pass."""
    random = np.random.default_rng(3)
    x, y = random.integers(0, 1000, 5000), random.integers(-900, 100, 5000)
    x, y = (x, y) if operator in ("<", "<=") else (y, x)
    table = stream("A" * 2500 + "B" * 2500, x, y.astype(float))
    matches = join(list(Construction(shared(f"PATTERN SEQ(A a, B b) WHERE a.x {operator} b.y", table))))
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator]
    assert len(matches) == compare.outer(x[:2500], y[2500:]).sum() > 100
