"""Numbers over all matches: exact up to DECIMAL(38,0), or an error that names the group; doubles; logarithms."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

import trendloom as tl
from trendloom.errors import RunError
from trendloom.spark import detect

TOTALS = "RETURN k, COUNT(*), SUM(A.x), AVG(A.x), MIN(A.x) PATTERN A+ GROUP BY k"


@pytest.fixture
def large(spark: Any) -> Any:
    """Six events of two groups, each with the largest integer of 64 bits."""
    return spark.range(6).selectExpr("'A' AS type", "id AS time", "id % 2 AS k", "9223372036854775807 AS x")


@pytest.fixture
def too_large(spark: Any) -> Any:
    rows = [("A", 1, 1, Decimal(9 * 10**37)), ("A", 2, 1, Decimal(9 * 10**37)), ("A", 3, 2, Decimal(1))]
    return spark.createDataFrame(rows, "type string, time int, k int, x decimal(38,0)")


def test_exact_beyond_64_bits(large: Any) -> None:
    rows = detect(large, TOTALS).orderBy("k").collect()
    assert [row["COUNT(*)"] for row in rows] == [7, 7]
    assert [row["SUM(A.x)"] for row in rows] == [12 * (2**63 - 1)] * 2
    assert [row["MIN(A.x)"] for row in rows] == [2**63 - 1] * 2


def test_float(large: Any) -> None:
    result = detect(large, TOTALS, numeric="float")
    assert result.schema["SUM(A.x)"].dataType.simpleString() == "double"
    assert {row["SUM(A.x)"] for row in result.collect()} == {float(12 * (2**63 - 1))}


def test_log(large: Any) -> None:
    row = detect(large, TOTALS, numeric="log").first()
    assert row["COUNT(*)"] == pytest.approx(math.log10(7))
    assert row["SUM(A.x)"] == pytest.approx(math.log10(12 * (2**63 - 1)))
    assert row["AVG(A.x)"] == pytest.approx(2.0**63)


def test_log_of_a_negative_sum(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1, -1)], "type string, time int, x int")
    with pytest.raises(Exception, match="is negative: it has no logarithm"):
        detect(df, "RETURN SUM(A.x) PATTERN A", numeric="log").collect()


class TestOverflow:
    def test_the_error_names_the_group_and_window(self, too_large: Any) -> None:
        result = detect(too_large, "RETURN k, SUM(A.x) PATTERN A GROUP BY k WITHIN 10")
        told = r"SUM\(A.x\) does not fit DECIMAL\(38,0\) in k = 1, the window that starts at 0"
        with pytest.raises(Exception, match=told) as caught:
            result.collect()
        assert "numeric" in str(caught.value)

    def test_also_where_partial_sums_are_merged(self, too_large: Any) -> None:
        with pytest.raises(Exception, match=r"does not fit DECIMAL\(38,0\) in the whole stream"):
            detect(too_large, "RETURN SUM(A.x) PATTERN A WHERE [time]").collect()

    def test_run_raises_our_own_error(self, too_large: Any) -> None:
        with pytest.raises(RunError, match=r"does not fit DECIMAL\(38,0\) in k = 1"):
            tl.run("RETURN k, SUM(A.x) PATTERN A GROUP BY k", too_large.toArrow(), engine="spark")

    @pytest.mark.parametrize("numeric", ["float", "log"])
    def test_other_numbers_take_it(self, too_large: Any, numeric: str) -> None:
        result = detect(too_large, "RETURN k, SUM(A.x) PATTERN A GROUP BY k", numeric=numeric)
        expected = 1.8e38 if numeric == "float" else math.log10(1.8e38)
        assert result.filter("k = 1").first()["SUM(A.x)"] == pytest.approx(expected)


def test_groups_coarser_than_the_partition_add_up(spark: Any) -> None:
    rows = [(f"{kind}", time, user, "g", time) for user in range(5) for time, kind in enumerate("AABB")]
    df = spark.createDataFrame(rows, "type string, time int, user int, g string, x int")
    query = "RETURN g, COUNT(*), SUM(B.x), AVG(B.x), MIN(A.x), MAX(B.x) PATTERN SEQ(A, B) WHERE [user] GROUP BY g"
    (row,) = detect(df, query, partitions=3).collect()
    assert tuple(row) == ("g", 20, 50, 2.5, 0, 3)
