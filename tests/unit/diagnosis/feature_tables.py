"""A table of all features in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from trendloom.diagnosis.feature_space import FeatureSpace, WindowedSpace, features_in_part, windows_within
from trendloom.diagnosis.features import FeatureTable, Ticks


def features_at(
    tables: Mapping[str, pa.Table], time: str, starts: Ticks, window: int, space: FeatureSpace
) -> FeatureTable:
    """All features over the windows that start there."""
    return features_in_part(tables, time, WindowedSpace(window, starts, space)).table


def feature_table(
    tables: Mapping[str, pa.Table], time: str, low: int, high: int, window: int, **chosen: Any
) -> FeatureTable:
    """All features of events by type, over the windows that lie whole inside [low, high).

    `chosen`: fields of `FeatureSpace`.
    """
    space = FeatureSpace(**chosen)
    return features_at(tables, time, windows_within([(low, high)], window, space.length), window, space)
