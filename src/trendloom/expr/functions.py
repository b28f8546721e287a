"""The functions of the language on vectors, and LIKE.

Functions of strings run once per distinct string: on the dictionary, not on the rows. `ln` and `exp` call the C library
per value (about 60 ns each) rather than NumPy's own: NumPy's differ in the last bit from machine to machine, and an
answer must not depend on the machine. A function without a value (sqrt(-1), ln(0), an overflow of exp) gives NULL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array, as_float, encode_strings, narrow
from trendloom.expr.decimals import nearest_units, rescaled, units_above, units_below
from trendloom.expr.operators import bounds, compare, finish, negate
from trendloom.expr.vectors import Vector, aligned, is_true, joint_length, joint_validity, nothing, to_doubles, unify
from trendloom.model.schema import Kind


def apply(name: str, arguments: Sequence[Vector], kind: Kind) -> Vector:
    """The function of that name; but for coalesce, NULL where an argument is."""
    if name in _OF_MANY:
        return _OF_MANY[name](_alike(arguments, kind))
    first = arguments[0]
    if first.kind is Kind.NULL:
        return nothing(kind, len(first))
    if name == "round" and len(arguments) == 2:
        return _round_to(first, arguments[1], kind)
    return _OF_ONE[name](first, kind)


# ------------------------------------------------------------------------------------------------- numbers


def _abs(operand: Vector, kind: Kind) -> Vector:
    if operand.values.dtype == np.int64 and bounds(operand)[0] > -(2**63):
        return replace(operand, values=np.abs(operand.values))
    if operand.values.dtype == np.float64:
        return replace(operand, values=np.abs(operand.values))
    opposite = negate(operand, kind)
    positive = is_true(compare(">=", operand, opposite))
    chosen = np.where(positive, operand.values.astype(object), opposite.values.astype(object))
    return replace(operand, values=narrow(chosen.astype(object), operand.valid))


def _sqrt(operand: Vector, kind: Kind) -> Vector:
    operand = to_doubles(operand) if operand.scale else operand
    if operand.values.dtype == np.object_:
        return _per_value(math.sqrt, operand, kind)
    with np.errstate(all="ignore"):
        return finish(np.sqrt(as_float(operand.values)), operand.valid, kind)


def _per_value(function: Callable[[float], float], operand: Vector, kind: Kind) -> Vector:
    """A function of the C library, which also takes integers beyond the doubles."""

    def value_or_nan(value: float) -> float:
        try:
            return function(value)
        except (ValueError, OverflowError):
            return math.nan

    operand = to_doubles(operand) if operand.scale else operand
    values = np.fromiter(map(value_or_nan, operand.values.tolist()), np.float64, len(operand))
    return finish(values, operand.valid, kind)


def _half_away(values: Array) -> Array:
    """Nearest integer, halves away from zero. `x + 0.5` would round; the fraction of a double is exact."""
    whole = np.trunc(values)
    return np.asarray(whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0.0))


def _to_integers(
    rounding: Callable[[Array], Array], of_units: Callable[[Array, int], Array], operand: Vector, kind: Kind
) -> Vector:
    """Doubles and decimals to integers; infinities have none."""
    if operand.values.dtype != np.float64:
        return Vector(kind, of_units(operand.values, operand.scale), operand.valid)
    finite = np.isfinite(operand.values)
    valid = operand.valid
    if not finite.all():
        valid = finite if valid is None else valid & finite
    whole = rounding(np.where(finite, operand.values, 0.0))
    if len(whole) == 0 or (whole.min() >= -(2.0**63) and whole.max() < 2.0**63):
        return Vector(kind, whole.astype(np.int64), valid)
    exact = np.empty(len(whole), dtype=object)
    exact[:] = [int(value) for value in whole.tolist()]
    return Vector(kind, narrow(exact, valid), valid)


def _round_to(operand: Vector, digits: Vector, kind: Kind) -> Vector:
    """Decimal places, halves of the exact value away from zero; infinities have none.

    Scaling rounds once and every half below 2^51 is a double, so scaling never moves a value across a half, only onto
    one; and a whole number divided by a power of ten up to 10^22 is the double nearest to the decimal result. What
    lands on a half, or is larger, is decided in decimal arithmetic.
    """
    if digits.valid is not None and not digits.valid[0]:
        return nothing(kind, len(operand))
    places = int(digits.values[0])
    if operand.kind is Kind.DECIMAL and operand.values.dtype != np.float64:
        return _round_decimals_to(operand, places)
    values = as_float(operand.values)
    if not 0 <= places <= 22:
        return finish(_rounded_one_by_one(values, places), operand.valid, kind)
    with np.errstate(all="ignore"):
        scaled = values * 10.0**places
        rounded = _half_away(scaled) / 10.0**places
        on_half = np.abs(scaled - np.trunc(scaled)) == 0.5
    doubtful = on_half | ~(np.abs(scaled) < 2.0**51)
    rounded[doubtful] = _rounded_one_by_one(values[doubtful], places)
    return finish(rounded, operand.valid, kind)


def _round_decimals_to(operand: Vector, places: int) -> Vector:
    """Decimals stay decimals, with no more digits after the point than they had."""
    if places >= operand.scale:
        return operand
    units = nearest_units(operand.values, operand.scale - places)
    return replace(operand, values=rescaled(units, max(-places, 0)), scale=max(places, 0))


_EXACT = Context(prec=1_200, rounding=ROUND_HALF_UP, Emax=10_000, Emin=-10_000)


def _rounded_one_by_one(values: Array, places: int) -> Array:
    unit = Decimal(1).scaleb(-places)

    def nearest(value: float) -> float:
        if not math.isfinite(value):
            return math.nan
        found = float(Decimal(value).quantize(unit, context=_EXACT))
        return math.nan if math.isinf(found) else found

    return np.fromiter(map(nearest, values.tolist()), np.float64, len(values))


# ------------------------------------------------------------------------------------------------- strings


def like(operand: Vector, pattern: str) -> Vector:
    """LIKE: `%` is any text, `_` any one character."""
    if operand.dictionary is None:
        return nothing(Kind.BOOL, len(operand))
    parts = (".*" if sign == "%" else "." if sign == "_" else re.escape(sign) for sign in pattern)
    matcher = re.compile("".join(parts), re.DOTALL)
    fits = np.array([matcher.fullmatch(text) is not None for text in operand.dictionary], np.bool_)
    return Vector(Kind.BOOL, fits[operand.values], operand.valid)


def _rewritten(function: Callable[[str], str], operand: Vector, kind: Kind) -> Vector:
    """A function on the dictionary: the results may fall together and change order, so they are ranked anew."""
    assert operand.dictionary is not None
    ranks, dictionary = encode_strings(pa.array([function(text) for text in operand.dictionary], pa.large_string()))
    return replace(operand, values=ranks[operand.values], dictionary=dictionary)


def _length(operand: Vector, kind: Kind) -> Vector:
    assert operand.dictionary is not None
    lengths = np.array([len(text) for text in operand.dictionary], np.int64)
    return Vector(kind, lengths[operand.values], operand.valid)


# ------------------------------------------------------------------------------------------ several arguments


def _alike(arguments: Sequence[Vector], kind: Kind) -> list[Vector]:
    """The arguments at one length, of one kind and, for strings, over one dictionary."""
    length = joint_length(arguments)
    same = [_of_kind(argument, kind).broadcast(length) for argument in arguments]
    return unify(same) if kind is Kind.STRING else aligned(same)


def _of_kind(vector: Vector, kind: Kind) -> Vector:
    if vector.kind is kind:
        return vector
    if vector.kind is Kind.NULL or kind is Kind.NULL:
        return nothing(kind, len(vector))
    return finish(vector.values, vector.valid, kind, vector.scale)


def _select(condition: Array, chosen: Vector, other: Vector) -> Vector:
    """`chosen` where the condition holds, else `other`."""
    values = np.where(condition, chosen.values, other.values)
    if chosen.valid is None and other.valid is None:
        return replace(chosen, values=values)
    known = [np.ones(len(one), np.bool_) if one.valid is None else one.valid for one in (chosen, other)]
    valid = np.where(condition, known[0], known[1])
    return replace(chosen, values=values, valid=None if valid.all() else valid)


def _coalesce(arguments: list[Vector]) -> Vector:
    """The first value that is known."""
    found = arguments[0]
    for argument in arguments[1:]:
        if found.valid is None:
            break
        found = _select(found.valid, found, argument)
    return found


def _extreme(operator: str, arguments: list[Vector]) -> Vector:
    """The least or greatest value; NULL where one of them is not known."""
    best = arguments[0]
    for argument in arguments[1:]:
        best = _select(compare(operator, best, argument).values, best, argument)
    return replace(best, valid=joint_validity(arguments, len(best)))


_OF_ONE: dict[str, Callable[[Vector, Kind], Vector]] = {
    "abs": _abs,
    "sqrt": _sqrt,
    "ln": partial(_per_value, math.log),
    "exp": partial(_per_value, math.exp),
    "floor": partial(_to_integers, np.floor, units_below),
    "ceil": partial(_to_integers, np.ceil, units_above),
    "round": partial(_to_integers, _half_away, nearest_units),
    "lower": partial(_rewritten, str.lower),
    "upper": partial(_rewritten, str.upper),
    "length": _length,
}

_OF_MANY: dict[str, Callable[[list[Vector]], Vector]] = {
    "coalesce": _coalesce,
    "least": partial(_extreme, "<="),
    "greatest": partial(_extreme, ">="),
}
