"""Vectorised evaluation equals the reference's scalar evaluation, row by row, on the worst values we know."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.amounts import amount

from trendloom.expr.decimals import as_decimal, exact_array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import (
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Expr,
    Function,
    Inverse,
    Junction,
    Negate,
    NullTest,
    Which,
    Wildcard,
)
from trendloom.expr.vectors import Vector, from_arrow
from trendloom.logical.bind.types import digits_after_point
from trendloom.model.schema import Column, Kind, Schema
from trendloom.reference import scalar

EXTREME = [0, 1, -1, 2, 3, 7, 2**53, 2**53 + 1, 2**53 - 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]
DOUBLES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.675, 0.49999999999999994, -1e300, 1e300, 1e-300, 2.0**53, 2.0**63, 1e22]
EXACT = [
    *map(Decimal, ("0.00", "0.01", "0.10", "0.20", "0.30", "-0.50", "2.50", "90071992547409.93")),
    *map(
        Decimal, ("92233720368547758.07", "-92233720368547758.08", "1234567890123456789.01", "1234567890123456789.02")
    ),
]
SCALES = {"DECIMAL0": 2, "DECIMAL1": 5}
ENDLESS = [math.inf, -math.inf]
TEXTS = ["", "a", "A", "b", "ab", "aB", "a%", "É", "é", "ß", "SS", "\n", "\U0001f600", "\uffff"]

VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INT: st.sampled_from(EXTREME) | st.integers(-10, 10) | st.integers(-(2**64), 2**64),
    Kind.FLOAT: st.sampled_from(DOUBLES + ENDLESS) | st.floats(allow_nan=False) | st.floats(-10, 10),
    Kind.DECIMAL: st.sampled_from(EXACT) | st.integers(-40, 40).map(lambda n: as_decimal(n, 1)),
    Kind.STRING: st.sampled_from(TEXTS) | st.text(max_size=3),
    Kind.BOOL: st.booleans(),
    Kind.TIME: st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]),
    Kind.DURATION: st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]),
}
NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT)
COMPARED = [*itertools.permutations(NUMBERS, 2), *((kind, kind) for kind in VALUES)]
SCHEMA = Schema(tuple(Column(name, Kind.DECIMAL, scale, 38) for name, scale in SCALES.items()))
ORDER = ["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Sample:
    """Columns by name, and an expression over them."""

    rows: int
    columns: dict[str, list[Any]]
    expr: Expr


@st.composite
def samples(draw: st.DrawFn, *kinds: Kind) -> Sample:
    rows = draw(st.integers(0, 6))
    columns: dict[str, list[Any]] = {"NULL": [None] * rows}
    for kind, values in VALUES.items():
        for number in range(2):
            column = st.lists(st.none() | values if number else values, min_size=rows, max_size=rows)
            columns[f"{kind.name}{number}"] = draw(column)
    kind = draw(st.sampled_from(kinds))
    return Sample(rows, columns, draw(expressions(kind, draw(st.integers(1, 4)))))


@st.composite
def expressions(draw: st.DrawFn, kind: Kind, depth: int) -> Expr:
    """A random expression of that kind, as the binder could have made it."""
    if depth == 0 or draw(st.integers(0, 9)) == 7:
        return draw(leaves(kind))

    def part(of: Kind) -> Expr:
        return draw(expressions(of, depth - 1))

    def pick(*choices: Any) -> Any:
        return draw(st.sampled_from(choices))

    if draw(st.integers(0, 5)) == 4:
        name = pick("coalesce", "least", "greatest") if kind is not Kind.BOOL else "coalesce"
        return Function(name, tuple(part(kind) for _ in range(pick(1, 2, 3))), kind)
    match kind:
        case Kind.INT:
            return draw(st.deferred(lambda: integers(part, pick)))
        case Kind.DECIMAL:
            return draw(st.deferred(lambda: decimals(part, pick)))
        case Kind.FLOAT:
            return draw(st.deferred(lambda: doubles(part, pick)))
        case Kind.STRING:
            return Function(pick("lower", "upper"), (part(kind),), kind)
        case Kind.BOOL:
            return draw(st.deferred(lambda: conditions(part, pick)))
        case Kind.TIME:
            return Arithmetic(pick("+", "-"), part(kind), part(Kind.DURATION), kind)
        case _:
            return draw(st.deferred(lambda: durations(part, pick)))


def leaves(kind: Kind) -> st.SearchStrategy[Expr]:
    own = [Attribute("a", Which.EACH, f"{kind.name}{number}", kind) for number in range(2)]
    never: list[Expr] = [Attribute("a", Which.EACH, "NULL", Kind.NULL), Constant(None, Kind.NULL), Constant(None, kind)]
    constants = st.builds(Constant, VALUES[kind], st.just(kind))
    return st.sampled_from(own) | st.sampled_from(own) | constants | st.sampled_from([*own, *own, *never])


def integers(part: Any, pick: Any) -> st.SearchStrategy[Expr]:
    made: list[Any] = [
        lambda: Arithmetic(pick("+", "-", "*", "%"), part(Kind.INT), part(Kind.INT), Kind.INT),
        lambda: Arithmetic(pick("+", "-", "*"), part(Kind.INT), part(Kind.INT), Kind.INT),
        lambda: Negate(part(Kind.INT), Kind.INT),
        lambda: Function("abs", (part(Kind.INT),), Kind.INT),
        lambda: Function(pick("floor", "ceil", "round"), (part(pick(*NUMBERS, Kind.FLOAT)),), Kind.INT),
        lambda: Function("length", (part(Kind.STRING),), Kind.INT),
    ]
    return st.sampled_from(made).map(lambda make: make())


def doubles(part: Any, pick: Any) -> st.SearchStrategy[Expr]:
    mixed = [(Kind.INT, Kind.FLOAT), (Kind.FLOAT, Kind.INT), (Kind.FLOAT, Kind.FLOAT), (Kind.DECIMAL, Kind.FLOAT)]
    divided = [*mixed, *itertools.product(NUMBERS[:2], repeat=2), (Kind.DURATION, Kind.DURATION)]

    def two(operators: tuple[str, ...], kinds: list[tuple[Kind, Kind]]) -> Expr:
        left, right = pick(*kinds)
        return Arithmetic(pick(*operators), part(left), part(right), Kind.FLOAT)

    made: list[Any] = [
        lambda: two(("+", "-", "*", "%"), mixed),
        lambda: two(("/",), divided),
        lambda: Negate(part(Kind.FLOAT), Kind.FLOAT),
        lambda: Function("abs", (part(Kind.FLOAT),), Kind.FLOAT),
        lambda: Function(pick("sqrt", "ln", "exp"), (part(pick(*NUMBERS)),), Kind.FLOAT),
        lambda: Function(pick("least", "greatest"), (part(Kind.DECIMAL), part(Kind.FLOAT)), Kind.FLOAT),
        lambda: Function(
            "round",
            (part(pick(Kind.INT, Kind.FLOAT)), Constant(pick(0, 1, 2, 3, 15, 22, 23, 320), Kind.INT)),
            Kind.FLOAT,
        ),
    ]
    return st.sampled_from(made).map(lambda make: make())


def decimals(part: Any, pick: Any) -> st.SearchStrategy[Expr]:
    def two() -> Expr:
        left, right = pick((Kind.DECIMAL, Kind.DECIMAL), (Kind.DECIMAL, Kind.INT), (Kind.INT, Kind.DECIMAL))
        return Arithmetic(pick("+", "-", "*", "%"), part(left), part(right), Kind.DECIMAL)

    made: list[Any] = [
        two,
        two,
        lambda: Negate(part(Kind.DECIMAL), Kind.DECIMAL),
        lambda: Function("abs", (part(Kind.DECIMAL),), Kind.DECIMAL),
        lambda: Function(pick("least", "greatest", "coalesce"), (part(Kind.DECIMAL), part(Kind.INT)), Kind.DECIMAL),
        lambda: Function("round", (part(Kind.DECIMAL), Constant(pick(-2, 0, 1, 2, 9), Kind.INT)), Kind.DECIMAL),
    ]
    return st.sampled_from(made).map(lambda make: make())


def durations(part: Any, pick: Any) -> st.SearchStrategy[Expr]:
    made: list[Any] = [
        lambda: Arithmetic("-", part(Kind.TIME), part(Kind.TIME), Kind.DURATION),
        lambda: Arithmetic(pick("+", "-", "%"), part(Kind.DURATION), part(Kind.DURATION), Kind.DURATION),
        lambda: Arithmetic("*", part(Kind.DURATION), part(Kind.INT), Kind.DURATION),
        lambda: Negate(part(Kind.DURATION), Kind.DURATION),
        lambda: Function("abs", (part(Kind.DURATION),), Kind.DURATION),
    ]
    return st.sampled_from(made).map(lambda make: make())


def conditions(part: Any, pick: Any) -> st.SearchStrategy[Expr]:
    def comparison() -> Expr:
        left, right = pick(*COMPARED)
        return Comparison(pick("=", "!=") if left is Kind.BOOL else pick(*ORDER), part(left), part(right))

    made: list[Any] = [
        comparison,
        comparison,
        comparison,
        lambda: Junction(pick("and", "or"), tuple(part(Kind.BOOL) for _ in range(pick(1, 2, 3)))),
        lambda: Junction(pick("and", "or"), tuple(part(Kind.BOOL) for _ in range(pick(2, 3)))),
        lambda: Inverse(part(Kind.BOOL)),
        lambda: NullTest(part(pick(*VALUES)), pick(True, False)),
        lambda: Wildcard(part(Kind.STRING), pick("", "%", "a%", "_", "%b", "a\\%", "_%", "É", ".")),
    ]
    return st.sampled_from(made).map(lambda make: make())


def as_vector(values: list[Any], kind: Kind, scale: int) -> Vector:
    """The column as it comes from Arrow."""
    if kind is Kind.DECIMAL:
        return from_arrow(pa.array(values, pa.decimal128(38, scale)), kind)
    types = {Kind.FLOAT: pa.float64(), Kind.STRING: pa.string(), Kind.BOOL: pa.bool_(), Kind.NULL: pa.null()}
    return from_arrow(exact_array(values) if kind not in types else pa.array(values, types[kind]), kind)


def both(sample: Sample) -> tuple[list[Any], list[Any]]:
    def column(leaf: Any) -> Vector:
        return as_vector(sample.columns[leaf.column], leaf.kind, SCALES.get(leaf.column, 0))

    fast = evaluate(sample.expr, column)
    slow = [
        scalar.evaluate(sample.expr, lambda leaf, row=row: exactly(sample.columns[leaf.column][row]))  # type: ignore[misc]
        for row in range(sample.rows)
    ]
    found = fast.broadcast(sample.rows).to_list()
    if sample.expr.kind is Kind.DECIMAL:
        assert fast.scale <= digits_after_point(sample.expr, SCHEMA)
        return [None if value is None else Fraction(value) for value in found], [
            None if value is None else Fraction(value) for value in slow
        ]
    return found, slow


def exactly(value: Any) -> Any:
    """A decimal as the definitions see it."""
    return Fraction(value) if isinstance(value, Decimal) else value


def as_fraction(value: Any) -> Fraction | None:
    """A value of a decimal expression; whole ones may come as integers."""
    return None if value is None else Fraction(value)


@settings(max_examples=amount(150), deadline=None)
@given(samples(*VALUES))
def test_vectors_give_what_the_scalar_evaluator_gives(sample: Sample) -> None:
    fast, slow = both(sample)
    assert fast == slow
    assert [type(value) for value in fast] == [type(value) for value in slow]


@settings(max_examples=amount(100), deadline=None)
@given(samples(Kind.BOOL))
def test_conditions_hold_where_the_scalar_evaluator_says(sample: Sample) -> None:
    fast, slow = both(sample)
    assert fast == slow


@settings(max_examples=amount(60), deadline=None)
@given(samples(Kind.FLOAT), st.sampled_from(["coalesce", "least", "greatest"]))
def test_integers_and_numbers_mix_as_numbers(sample: Sample, name: str) -> None:
    mixed = (Attribute("a", Which.EACH, "INT1", Kind.INT), Attribute("a", Which.EACH, "FLOAT1", Kind.FLOAT))
    fast, slow = both(Sample(sample.rows, sample.columns, Function(name, mixed, Kind.FLOAT)))
    assert fast == [None if value is None else float(value) for value in slow]
