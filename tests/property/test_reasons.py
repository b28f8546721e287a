"""Vectorised features, rewards, correlations and ranges equal plain loops that share no code with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.baselines.explanation import plain_correlation, plain_features, plain_reward
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough

from trendloom.diagnosis.feature_space import FeatureSpace, WindowedSpace, features_in_part
from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.diagnosis.formula import AbnormalRange, Formula, formula_of
from trendloom.diagnosis.reasoning import correlations
from trendloom.diagnosis.request import Settings
from trendloom.diagnosis.reward import abnormal_ranges, boundary, rewards, segments

VALUES = st.one_of(st.none(), st.integers(0, 4).map(float), st.floats(-5, 5, width=32))


@st.composite
def labelled_values(draw: st.DrawFn, rows: int = 3) -> tuple[np.ndarray, np.ndarray]:
    points = draw(st.integers(1, 12))
    abnormal = draw(st.lists(st.booleans(), min_size=points, max_size=points))
    values = [draw(st.lists(VALUES, min_size=points, max_size=points)) for _ in range(rows)]
    return np.array(values, float), np.array(abnormal)


def plainly(row: np.ndarray, abnormal: np.ndarray) -> float:
    there = ~np.isnan(row)
    return plain_reward(row[there & abnormal].tolist(), row[there & ~abnormal].tolist())


@thorough(amount(120))
@given(labelled_values())
def test_rewards_of_all_features_at_once(case: tuple[np.ndarray, np.ndarray]) -> None:
    values, abnormal = case
    found = rewards(values, abnormal)
    assert found.reward == pytest.approx([plainly(row, abnormal) for row in values], abs=1e-9)
    assert (found.reward <= 1).all()


@thorough(amount(60))
@given(labelled_values(), st.randoms(use_true_random=False))
def test_rewards_see_neither_order_nor_scale_nor_names_of_classes(
    case: tuple[np.ndarray, np.ndarray], chance: Any
) -> None:
    values, abnormal = case
    before = rewards(values, abnormal).reward
    places = list(range(len(abnormal)))
    chance.shuffle(places)
    assert rewards(values[:, places], abnormal[places]).reward == pytest.approx(before)
    # values of 32 bits stay apart in doubles under these
    for transformed in (np.arctan(values), 3 * values + 7, -values, values**3 + values):
        if (np.diff(np.sort(transformed, axis=1), axis=1) == 0).sum() == (
            np.diff(np.sort(values, axis=1), axis=1) == 0
        ).sum():
            assert rewards(transformed, abnormal).reward == pytest.approx(before)
    assert rewards(values, ~abnormal).reward == pytest.approx(before)


# -------------------------------------------------------------------------------------------------- features


@st.composite
def some_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    row = st.fixed_dictionaries(
        {
            "time": st.integers(-7, 25),
            "x": VALUES,
            "y": st.integers(-3, 3),
            "node": st.sampled_from(["a", "b", "c", None]),
            "one": st.just("same"),
        }
    )
    return draw(st.lists(row, min_size=1, max_size=15))


@thorough(amount(50))
@given(st.fixed_dictionaries({"A": some_events(), "B": some_events()}), st.sets(st.integers(-2, 5), min_size=1))
def test_features_of_columns_equal_those_of_rows(events: dict[str, list[dict[str, Any]]], windows: set[int]) -> None:
    kinds = {"time": pa.int64(), "x": pa.float64(), "y": pa.int32(), "node": pa.string(), "one": pa.string()}
    tables = {name: pa.Table.from_pylist(rows, pa.schema(kinds)) for name, rows in events.items()}
    starts = np.array(sorted(windows)) * 5
    found = features_in_part(tables, "time", WindowedSpace(5, starts, FeatureSpace())).table
    expected = plain_features(events, "time", starts.tolist(), 5, ["node", "one"])
    by_key = {
        (f.type, f.attribute, f.function, f.category): row for f, row in zip(found.features, found.values, strict=True)
    }
    assert by_key.keys() == expected.keys()
    for key, row in by_key.items():
        plain = np.array(expected[key], float)
        assert row == pytest.approx(plain, rel=1e-10, abs=1e-10, nan_ok=True), key


# ---------------------------------------------------------------------------------------- clusters and ranges


@thorough(amount(60))
@given(labelled_values(rows=4))
def test_correlations_of_all_pairs(case: tuple[np.ndarray, np.ndarray]) -> None:
    values = np.round(case[0], 3)
    found = correlations(values)
    rows = [[None if np.isnan(value) else value for value in row] for row in values.tolist()]
    for one, other in combinations(range(len(values)), 2):
        assert found[one, other] == pytest.approx(plain_correlation(rows[one], rows[other]), abs=1e-6)


def worth(ranges: Sequence[AbnormalRange], values: np.ndarray, abnormal: np.ndarray) -> float:
    inside = np.zeros(len(values), bool)
    for one in ranges:
        inside |= (one.low <= values) & (values <= one.high)
    return float(inside[abnormal].mean() - inside[~abnormal].mean())


@thorough(amount(60))
@given(labelled_values(rows=1), st.integers(1, 3))
def test_no_other_ranges_are_worth_more(case: tuple[np.ndarray, np.ndarray], most: int) -> None:
    """Against every choice of as many runs of segments."""
    values, abnormal = case[0][0], case[1]
    known = ~np.isnan(values)
    values, abnormal = values[known], abnormal[known]
    if not abnormal.any() or abnormal.all():
        return
    found = abnormal_ranges(values, abnormal, Settings(most_ranges=most, range_gain=0))
    assert len(found) <= most
    parts = segments(values, abnormal)
    best = 0.0
    for cuts in range(0, 2 * most + 1, 2):
        for ends in combinations(range(len(parts) + 1), cuts):
            runs = [
                AbnormalRange(parts.low[low], parts.high[high - 1])
                for low, high in zip(ends[::2], ends[1::2], strict=True)
            ]
            best = max(best, worth(runs, values, abnormal))
    assert worth(found, values, abnormal) == pytest.approx(best)


@thorough(amount(200))
@given(st.floats(allow_nan=False, width=64), st.floats(allow_nan=False, width=64))
def test_a_boundary_keeps_the_sides_apart(inside: float, outside: float) -> None:
    if inside == outside:
        return
    found = boundary(inside, outside)
    if inside < outside:
        assert inside <= found < outside
    else:
        assert outside < found <= inside


@st.composite
def some_ranges(draw: st.DrawFn) -> tuple[AbnormalRange, ...]:
    """Ranges that ascend and do not touch; the first and last may have no end."""
    ends = sorted(draw(st.sets(st.integers(-20, 20), min_size=2, max_size=8).filter(lambda found: len(found) % 2 == 0)))
    ranges = [AbnormalRange(float(low), float(high)) for low, high in zip(ends[::2], ends[1::2], strict=True)]
    if draw(st.booleans()):
        ranges[0] = AbnormalRange(-np.inf, ranges[0].high)
    elif draw(st.booleans()):
        ranges[-1] = AbnormalRange(ranges[-1].low, np.inf)
    return tuple(ranges)


def ranges_of(formula: Formula, feature: Feature) -> tuple[AbnormalRange, ...]:
    """The ranges of a feature that its clauses came from."""
    clauses = [clause for clause in formula.clauses if clause[0].feature == feature]
    lows, highs = [-np.inf], [np.inf]
    for clause in clauses:
        if len(clause) == 2:
            highs.append(clause[0].bound)
            lows.append(clause[1].bound)
            continue
        bound = clause[0].bound
        if clause[0].operator in (">=", "="):
            lows[0] = bound
        if clause[0].operator in ("<=", "="):
            highs[0] = bound
    return tuple(AbnormalRange(low, high) for low, high in zip(sorted(lows), sorted(highs), strict=True))


@thorough(amount(60))
@given(some_ranges(), some_ranges(), st.lists(st.tuples(VALUES, VALUES), min_size=1))
def test_formulas_say_what_ranges_say(
    one: tuple[AbnormalRange, ...], other: tuple[AbnormalRange, ...], points: list[tuple[float | None, float | None]]
) -> None:
    features = (Feature("T", "x", "mean", None, 1), Feature("T", "y", "max", None, 1))
    formula = formula_of(dict(zip(features, (one, other), strict=True)))
    values = np.array(points, float).T * 4
    table = FeatureTable(features, 1, np.arange(len(points)), values)
    inside = [any(r.low <= x <= r.high for r in one) and any(r.low <= y <= r.high for r in other) for x, y in values.T]
    assert formula.evaluate(table).tolist() == inside
    assert (ranges_of(formula, features[0]), ranges_of(formula, features[1])) == (one, other)
    assert Formula.from_json(formula.to_json()) == formula
    assert [read(str(formula), x, y) for x, y in values.T] == inside


def read(text: str, x: float, y: float) -> bool:
    """The text of a formula, taken at its word."""
    named = text.replace("T.x mean over 1", "x").replace("T.y max over 1", "y").replace(" = ", " == ")
    return bool(eval(named.replace("AND", "and").replace("OR", "or"), {"x": x, "y": y}))
