"""Features of a stream that is cut in time: the same, bit by bit, as of the whole, wherever it is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.diagnosis.feature_tables import features_at

from trendloom.diagnosis.archived_features import joined_in_time
from trendloom.diagnosis.feature_space import (
    Excluded,
    FeatureSpace,
    WindowedSpace,
    features_in_part,
    windows_within,
)


def streams(seed: int) -> dict[str, pa.Table]:
    """Two types; columns that are categories of the whole only, of no part, of none; values that some parts lack."""
    draw = np.random.default_rng(seed)
    count = 120
    times = np.sort(draw.integers(0, 100, count))
    late = times > 60
    return {
        "A": pa.table({
            "time": times,
            "run": np.array(["r1", "r2"])[draw.integers(0, 2, count)],
            "half": np.where(late, "b", "a"),
            "always": ["x"] * count,
            "id": [f"i{number}" for number in range(count)],
            "many": [f"m{time // 4}" for time in times],
            "some": pa.array([None if time < 50 else "s" for time in times], pa.string()),
            "x": draw.normal(size=count),
            "y": pa.array([None if time > 40 else float(time) for time in times]),
            "z": pa.array([None] * count, pa.float64()),
        }),
        "B": pa.table({"time": times[late], "x": draw.integers(0, 9, int(late.sum()))}),
    }  # fmt: skip


SPACES = {
    "all": FeatureSpace(),
    "means": FeatureSpace(functions=("mean",), keys=("run",)),
    "left out": FeatureSpace(
        left_out=[
            Excluded("A", "y", ((("run", "r1"),),)),
            Excluded("B", None),
            Excluded("A", "x"),
        ]
    ),
    "left out of a stretch": FeatureSpace(left_out=[Excluded("A", None, ((("run", "r2"),),), (0, 30))]),
}


@pytest.mark.parametrize("cuts", [(), (50,), (10, 20, 70), tuple(range(5, 100, 5))], ids=len)
@pytest.mark.parametrize("name", SPACES)
def test_parts_are_the_whole(name: str, cuts: tuple[int, ...]) -> None:
    space, tables, starts = SPACES[name], streams(len(cuts)), windows_within([(0, 30), (45, 100)], 5)
    whole = features_at(tables, "time", starts, 5, space)
    borders = [0, *cuts, 100]
    parts = [
        features_in_part(
            {type_: table}, "time", WindowedSpace(5, starts[(starts >= low) & (starts < high)], space), whole=False
        )
        for type_, table in tables.items()
        for low, high in pairwise(borders)
        if ((starts >= low) & (starts < high)).any()
    ]  # fmt: skip
    found = joined_in_time(parts, starts, 5)
    assert set(found.features) == set(whole.features)
    assert np.array_equal(found.take(whole.features).values, whole.values, equal_nan=True)


def test_what_is_decided_by_the_whole() -> None:
    names = {one.name for one in features_at(streams(1), "time", np.arange(0, 100, 5), 5, FeatureSpace()).features}
    assert "A[half = a] count over 5" in names, "each half has one value only"
    assert "A[some = s] count over 5" in names, "other events lack it"
    assert "A.y count over 5" in names
    assert not any("always" in one or "id" in one or "many" in one for one in names)
