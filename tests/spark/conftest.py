"""Small DataFrames for the tests of `detect`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

EVENTS = [
    ("a1", "A", 1, 5, "u"),
    ("b2", "B", 2, 7, "u"),
    ("a3", "A", 3, 9, "v"),
    ("b4", "B", 4, 1, "v"),
    ("c5", "C", 5, 2, None),
]
COLUMNS = "id string, type string, time bigint, x bigint, g string"


@pytest.fixture
def events(spark: Any) -> Any:
    """Two A–B pairs, of groups u and v, and a C of no group."""
    return spark.createDataFrame(EVENTS, COLUMNS)


@pytest.fixture
def ids() -> Callable[[Any], list[str]]:
    """The ids of the events of every row, rows in order of their ids."""

    def ids(df: Any) -> list[str]:
        return sorted(" ".join(event["id"] for event in row["events"]) for row in df.collect())

    return ids


@pytest.fixture
def session_settings(spark: Any) -> Any:
    """`session_settings(key=value)` for one test; the session gets its own settings back."""
    before: dict[str, str | None] = {}

    def set_them(**settings: str) -> None:
        for name, value in settings.items():
            key = "spark.sql." + name.replace("__", ".")
            before.setdefault(key, spark.conf.get(key))
            spark.conf.set(key, value)

    yield set_them
    for key, value in before.items():
        spark.conf.set(key, value)
