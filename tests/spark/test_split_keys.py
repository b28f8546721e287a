"""Queries without `[k]` whose conditions keep keys apart: moved by them on Spark, with the rows of the definitions."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from tests.property.compare import rows_of
from tests.property.strategies import to_table

import trendloom as tl
from trendloom.spark import detect

QUERIES = {
    "pairs": "PATTERN SEQ(A a, NOT (C c: c.k = b.k), B b) WHERE a.k = b.k WITHIN 9",
    "in_groups": "PATTERN SEQ(A a, B+ b[]) WHERE [g] AND a.k = b.k WITHIN 6",
    "values": "RETURN a.id AS first, b.id AS last PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 SLIDE 3",
    "runs": "PATTERN SEQ(A a, B b, C c) SEMANTICS skip-till-next-match WHERE a.k = b.k AND c.k = a.k",
    "added_up": "RETURN COUNT(*), SUM(A.x), MAX(B.x) PATTERN SEQ(A, B) WHERE A.k = B.k WITHIN 10 SLIDE 5",
    "by_group": "RETURN g, COUNT(*) PATTERN SEQ(A a, B b) WHERE a.k = b.k GROUP BY g",
    "with_key": "RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE [k]",
    "without_key": "RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE a.k = b.k",
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    chosen = random.Random(31)
    keys, groups = (0, 1, 2, 3, None), ("u", "v", None)
    return to_table(
        [
            {"id": n, "type": chosen.choice("ABC"), "time": n // 2, "x": n % 7, "y": 0.0, "g": chosen.choice(groups),
             "k": chosen.choice(keys)}
            for n in range(60)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_alone(spark: Any, table: pa.Table, name: str) -> None:
    found = tl.run(QUERIES[name], spark.createDataFrame(table))
    expected = tl.run(QUERIES[name], table, engine="reference")
    assert found.column_names == expected.column_names
    assert rows_of(found) == rows_of(expected)
    assert _ends(found) == _ends(tl.run(QUERIES[name], table, engine="local"))


def test_together(spark: Any, table: pa.Table) -> None:
    text = "\n".join(f"QUERY {name}: {query}" for name, query in QUERIES.items())
    found = detect(spark.createDataFrame(table), text, partitions=2).toArrow().to_pylist()
    for name, query in QUERIES.items():
        expected = tl.run(query, table, engine="reference")
        mine = [{key: row[key] for key in expected.column_names} for row in found if row["query"] == name]
        assert rows_of(mine) == rows_of(expected), name


def _ends(found: pa.Table) -> list[Any]:
    """Rows in their order, by what decides it."""
    rows = found.to_pylist() if "events" in found.column_names else []
    return [(row.get("g"), row["events"][0]["time"], row["events"][-1]["time"]) for row in rows]
