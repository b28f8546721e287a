"""Reasons as formulas: which values of which features are abnormal, in conjunctive normal form.

The abnormal values of a feature are some ranges r1 < r2 < ... that do not touch. "In one of them" is a conjunction of
disjunctions without further ado: not below the first, not above the last, and for every gap between two ranges, at
most its lower or at least its upper end. A window is abnormal if every clause is true; a feature without a value
there makes its predicates false, because what is not known is not held against a window.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from trendloom.diagnosis.features import Feature, FeatureTable, Floats, Ticks, Truths
from trendloom.errors import DataError

Operator = Literal[">=", "<=", ">", "<", "="]
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class AbnormalRange:
    """Values from `low` to `high`, both included; infinite where there is no end."""

    low: float
    high: float


@dataclass(frozen=True)
class Predicate:
    """A feature compared with a number."""

    feature: Feature
    operator: Operator
    bound: float

    def __str__(self) -> str:
        return f"{self.feature.name} {self.operator} {show_number(self.bound)}"

    def holds(self, values: Floats) -> Truths:
        """Of which values it is true; of NaN it is not."""
        return np.asarray(COMPARE[self.operator](values, self.bound), bool)


@dataclass(frozen=True)
class Formula:
    """A conjunction of clauses, each a disjunction of predicates. Without clauses it says nothing and is never true."""

    clauses: tuple[tuple[Predicate, ...], ...]

    def __str__(self) -> str:
        return " AND ".join(_show_clause(clause) for clause in self.clauses)

    @property
    def features(self) -> tuple[Feature, ...]:
        """Each once, in the order in which they appear."""
        return tuple(dict.fromkeys(predicate.feature for clause in self.clauses for predicate in clause))

    def evaluate(self, *tables: FeatureTable) -> Truths:
        """Which windows are abnormal: those of the table with the shortest window.

        Features over longer windows have the value of the window that holds the shorter one.
        """
        times = min(tables, key=lambda table: table.window).starts
        values = values_at(self.features, times, tables)
        true = np.full(len(times), bool(self.clauses))
        for clause in self.clauses:
            true &= np.logical_or.reduce([predicate.holds(values[predicate.feature]) for predicate in clause])
        return true

    def to_json(self) -> list[list[dict[str, Any]]]:
        """As JSON that `from_json` reads."""
        return [[_predicate_json(predicate) for predicate in clause] for clause in self.clauses]

    @staticmethod
    def from_json(found: Sequence[Sequence[Mapping[str, Any]]]) -> Formula:
        return Formula(tuple(tuple(_read_predicate(one) for one in clause) for clause in found))


def values_at(features: Sequence[Feature], times: Ticks, tables: Sequence[FeatureTable]) -> dict[Feature, Floats]:
    """The numbers of features at points of time, each from the table of its window."""
    found: dict[Feature, Floats] = {}
    by_window = {table.window: table for table in tables}
    for window in dict.fromkeys(feature.window for feature in features):
        some = [feature for feature in features if feature.window == window]
        if window not in by_window:
            raise DataError(
                f"feature '{some[0].name}' needs windows of {some[0].length or window}",
                hint="there are windows of " + ", ".join(table.length for table in tables),
            )
        found |= zip(some, by_window[window].take(some).at(times), strict=True)
    return found


# -------------------------------------------------------------------------------------- formulas and ranges


def clauses_of(feature: Feature, ranges: Sequence[AbnormalRange]) -> tuple[tuple[Predicate, ...], ...]:
    """ "In one of the ranges", which ascend and do not touch, as clauses."""
    first, last = ranges[0], ranges[-1]
    if len(ranges) == 1 and first.low == first.high:
        return ((Predicate(feature, "=", first.low),),)
    clauses: list[tuple[Predicate, ...]] = []
    if np.isfinite(first.low):
        clauses.append((Predicate(feature, ">=", first.low),))
    if np.isfinite(last.high):
        clauses.append((Predicate(feature, "<=", last.high),))
    for below, above in pairwise(ranges):
        clauses.append((Predicate(feature, "<=", below.high), Predicate(feature, ">=", above.low)))
    return tuple(clauses)


def formula_of(ranges: Mapping[Feature, Sequence[AbnormalRange]]) -> Formula:
    """Every feature in one of its ranges."""
    return Formula(tuple(clause for feature, some in ranges.items() for clause in clauses_of(feature, some)))


# ------------------------------------------------------------------------------------------------- as text


def show_number(number: float) -> str:
    """The shortest text of a number: 1.9e9, 0.25, 12."""
    text = f"{number:.12g}"
    if not np.isfinite(number) or ("e" not in text and (number == 0 or 1e-4 <= abs(number) < 1e7)):
        return text
    mantissa, exponent = np.format_float_scientific(float(text), trim="-").split("e")
    return f"{mantissa}e{int(exponent)}"


def _show_clause(clause: Sequence[Predicate]) -> str:
    text = " OR ".join(map(str, clause))
    return f"({text})" if len(clause) > 1 else text


def _predicate_json(predicate: Predicate) -> dict[str, Any]:
    return {"feature": predicate.feature.to_json(), "operator": predicate.operator, "bound": predicate.bound}


def _read_predicate(found: Mapping[str, Any]) -> Predicate:
    if found["operator"] not in COMPARE:
        raise DataError(f"'{found['operator']}' is not a comparison", hint=f"there are {', '.join(COMPARE)}")
    return Predicate(Feature.from_json(found["feature"]), found["operator"], float(found["bound"]))
