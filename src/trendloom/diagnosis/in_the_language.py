"""A monitor as a query, where the language can say it: counts, means, least and greatest values of one kind of events.

    QUERY low_memory: RETURN AVG(e.free) PATTERN Memory e WITHIN 30 s HAVING AVG(e.free) <= 1.9

What it cannot say stays a monitor: deviations and changes, several types or window sizes at once, and windows in which
nothing happened, because where there is no match there is no row.
"""

from __future__ import annotations

import math
from decimal import Decimal

from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.formula import COMPARE, Formula, Predicate
from trendloom.frontend.tql.keywords import write_name
from trendloom.logical.display import show_duration
from trendloom.model.time import TimeAxis

AGGREGATES = {"mean": "AVG", "min": "MIN", "max": "MAX"}
EVENT = "e"


def query_of(formula: Formula, name: str, axis: TimeAxis) -> str | None:
    """The query whose rows are the windows in which the formula holds; None: the language cannot say it."""
    features = formula.features
    if len({(one.type, one.category, one.window) for one in features}) != 1 or _holds_of_nothing(formula):
        return None
    returned = [_aggregate(one) for one in features]
    if any(one is None for one in returned):
        return None
    first = features[0]
    conditions = [" OR ".join(_comparison(one) for one in clause) for clause in formula.clauses]
    conditions = [
        f"({one})" if len(clause) > 1 else one for one, clause in zip(conditions, formula.clauses, strict=True)
    ]
    lines = [
        f"QUERY {write_name(name)}:",
        "  RETURN " + ", ".join(str(one) for one in returned),
        f"  PATTERN {write_name(first.type)} {EVENT}",
        *([] if first.category is None else [f"  WHERE {_category(first.category)}"]),
        f"  WITHIN {show_duration(first.window, axis)}",
        "  HAVING " + " AND ".join(conditions),
    ]
    return "\n".join(lines) + "\n"


def _holds_of_nothing(formula: Formula) -> bool:
    """Whether the formula is true of a window without such events: all counts are 0, and nothing else has a value."""

    def holds(predicate: Predicate) -> bool:
        return predicate.feature.function == "count" and bool(COMPARE[predicate.operator](0.0, predicate.bound))

    return all(any(holds(one) for one in clause) for clause in formula.clauses)


def _aggregate(feature: Feature) -> str | None:
    if feature.attribute is None:
        return "COUNT(*)" if feature.function == "count" else None
    if feature.function not in AGGREGATES:
        return None
    return f"{AGGREGATES[feature.function]}({EVENT}.{write_name(feature.attribute, reserved_allowed=True)})"


def _comparison(predicate: Predicate) -> str:
    return f"{_aggregate(predicate.feature)} {predicate.operator} {_number(predicate.bound)}"


def _number(bound: float) -> str:
    if not math.isfinite(bound):
        raise ValueError(f"{bound} is not a bound")
    return format(Decimal(repr(bound)), "f")


def _category(category: tuple[str, str]) -> str:
    name, value = category
    quoted = "'" + value.replace("'", "''") + "'"
    return f"{EVENT}.{write_name(name, reserved_allowed=True)} = {quoted}"
