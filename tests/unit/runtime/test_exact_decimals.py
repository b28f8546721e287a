"""Decimals are exact on the local and the reference engine: keys, conditions, sums, results and their types."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.cli.output import Preview, show
from trendloom.errors import BindError, DataError, RunError
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.io.write import csv_lines, json_lines
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.runtime.planning import plan_query
from trendloom.streaming.streaming_query import streaming_query_of

ENGINES = ["local", "reference"]
BIG = "1234567890123456789"

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def events(kind: pa.DataType, *values: str | None, **more: Any) -> pa.Table:
    """Events of type A at times 1, 2, ..."""
    found = [None if value is None else Decimal(value) for value in values]
    times = list(range(1, len(values) + 1))
    return pa.table({"time": times, "type": ["A"] * len(values), "x": pa.array(found, kind), **more})


def only(query: str, table: pa.Table, engine: str, **options: Any) -> Any:
    """The one value that a query gives."""
    rows = tl.run(query, table, engine=engine, **options).to_pylist()
    assert len(rows) == 1, rows
    (value,) = rows[0].values()
    return value


def count(condition: str, table: pa.Table, engine: str, pattern: str = "A a") -> int:
    found = tl.run(f"PATTERN {pattern} WHERE {condition} RETURN COUNT(*)", table, engine=engine).to_pylist()
    return int(found[0]["COUNT(*)"]) if found else 0


MONEY = pa.decimal128(10, 2)
WIDE = pa.decimal128(38, 2)


# ------------------------------------------------------------------------------------------------------- conditions


def test_a_sum_of_decimals_equals_the_decimal_it_is(engine: str) -> None:
    table = events(MONEY, "0.10", "0.20", "0.30")
    assert count("a.x + b.x = c.x", table, engine, "SEQ(A a, A b, A c)") == 1
    assert count("a.x + 0.2 = b.x", table, engine, "SEQ(A a, A b)") == 1


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("a.x = 0.1", 1),
        ("a.x = 0.10", 1),
        ("a.x = 0.1 + 0.2", 1),
        ("a.x >= 0.3", 2),
        ("a.x * 3 = 0.3", 1),
        ("a.x IN (0.1, 0.2)", 2),
        ("a.x BETWEEN 0.1 AND 0.3", 3),
        ("a.x = 7", 1),
        ("a.x < 0.305 AND a.x > 0.295", 1),
        ("a.x % 0.1 = 0", 4),
        ("round(a.x, 1) = a.x", 4),
        ("floor(a.x) = ceil(a.x)", 1),
        ("abs(-a.x) = a.x AND -a.x = 0 - a.x", 4),
        ("coalesce(a.x, 0.1) = 0.1", 2),
        ("min(a.x, 0.25) = 0.25", 2),
        ("a.x IS NULL", 1),
        ("a.x / 3 = 0.1", 1),
        ("sqrt(a.x * a.x) = a.x", 4),
    ],
)
def test_conditions_on_decimals(condition: str, found: int, engine: str) -> None:
    assert count(condition, events(MONEY, "0.10", "0.20", "0.30", "7.00", None), engine) == found


@pytest.mark.parametrize("kind", [WIDE, pa.decimal256(60, 2)], ids=str)
def test_wide_decimals_are_told_apart(kind: pa.DataType, engine: str) -> None:
    table = events(kind, f"{BIG}.01", f"{BIG}.02", f"{BIG}.01")
    assert count("a.x = b.x", table, engine, "SEQ(A a, A b)") == 1
    assert count("a.x < NEXT(a).x", table, engine, "A a+") == 4
    assert count("a.x < NEXT(a).x", table, engine, "A a+ SEMANTICS skip-till-next-match") == 4
    assert count(f"a.x = {BIG}.01", table, engine) == 2
    assert count(f"a.x > {BIG}", table, engine) == 3
    assert count(f"a.x - 0.01 = {BIG}", table, engine) == 2
    assert count("a[i].x > max(a[..i-1].x)", table, engine, "A a+") == 4
    assert count("a[i].x < sum(a[..i-1].x)", table, engine, "A a+") == 4


def test_decimals_of_other_scale_and_integers_are_compared_exactly(engine: str) -> None:
    other = pa.array([Decimal("0.100"), Decimal("0.2004"), Decimal("3"), None], pa.decimal128(20, 4))
    table = events(MONEY, "0.10", "0.20", "3.00", "4.00", y=other, n=pa.array([1, 0, 3, 4]))
    assert count("a.x = a.y", table, engine) == 2
    assert count("a.x < a.y", table, engine) == 1
    assert count("a.x = a.n", table, engine) == 2
    assert count("a.x = b.n AND a.time = b.time - 1", table, engine, "SEQ(A a, A b)") == 0
    assert count("a.n = NEXT(a).x", table, engine, "A a+") == 4


def test_beside_a_double_a_decimal_is_the_nearest_double(engine: str) -> None:
    table = events(MONEY, "0.10", "0.30", "2.50", y=pa.array([0.1, 0.3, 2.0]))
    assert count("a.x = a.y", table, engine) == 2
    assert count("a.x >= a.y", table, engine) == 3
    assert count("a.y = b.x AND a.time < b.time", table, engine, "SEQ(A a, A b)") == 0
    assert only("PATTERN A a WHERE a.y = 2 RETURN a.x + a.y AS s", table, engine) == 4.5


# -------------------------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize("kind", [WIDE, pa.decimal256(70, 3), pa.dictionary(pa.int8(), WIDE)], ids=str)
def test_keys_that_doubles_would_merge(kind: pa.DataType, engine: str) -> None:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    values = pa.array([Decimal(f"{BIG}.01"), Decimal(f"{BIG}.02"), Decimal(f"{BIG}.01"), None], plain)
    keys = values.dictionary_encode() if pa.types.is_dictionary(kind) else values
    table = pa.table({"time": [1, 2, 3, 4], "type": ["A"] * 4, "x": keys})
    found = tl.run("PATTERN SEQ(A a, A b) WHERE [x] RETURN a.time, b.time", table, engine=engine).to_pylist()
    assert [(row["a.time"], row["b.time"]) for row in found] == [(1, 3)]
    assert found[0]["x"] == Decimal(f"{BIG}.01")
    groups = tl.run("PATTERN A RETURN x, COUNT(*) GROUP BY x", table, engine=engine).to_pylist()
    assert [(row["x"], row["COUNT(*)"]) for row in groups] == [(Decimal(f"{BIG}.01"), 2), (Decimal(f"{BIG}.02"), 1)]


# ------------------------------------------------------------------------------------------------------------ results

TOTALS = "PATTERN A+ RETURN SUM(A.x) AS total, MIN(A.x) AS least, MAX(A.x) AS most, AVG(A.x) AS mean, COUNT(A.x) AS n"


def test_totals_over_matches_are_exact(engine: str) -> None:
    found = tl.run(TOTALS, events(MONEY, "0.10", "0.20", None), engine=engine)
    assert [str(kind) for kind in found.schema.types] == [str(WIDE), str(MONEY), str(MONEY), "double", "int64"]
    (row,) = found.to_pylist()
    assert row == {"total": Decimal("1.20"), "least": Decimal("0.10"), "most": Decimal("0.20"), "mean": 0.15, "n": 8}


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (MONEY, "99999999.99", "decimal128(38, 2)"),
        (WIDE, f"{BIG}.01", "decimal128(38, 2)"),
        (WIDE, "9" * 36 + ".99", "decimal256(76, 2)"),
        (pa.decimal256(76, 2), "9" * 74 + ".99", "string"),
        (pa.decimal128(38, 38), "0." + "9" * 38, "decimal256(76, 38)"),
        (pa.decimal256(76, 60), "1." + "9" * 60, "decimal256(76, 60)"),
        (pa.decimal64(18, 2), "-9999999999999999.99", "decimal128(38, 2)"),
        (pa.decimal32(9, 9), "0.000000001", "decimal128(38, 9)"),
    ],
    ids=str,
)
def test_sums_are_as_wide_as_they_need(kind: pa.DataType, value: str, wanted: str, engine: str) -> None:
    table = events(kind, value, value, value)
    found = tl.run("PATTERN A RETURN SUM(A.x), MIN(A.x), MAX(A.x), AVG(A.x)", table, engine=engine)
    (row,) = found.to_pylist()
    assert str(found.schema.field("SUM(A.x)").type) == wanted
    assert found.schema.field("MIN(A.x)").type == kind
    assert Fraction(str(row["SUM(A.x)"])) == 3 * Fraction(value)
    assert row["MIN(A.x)"] == row["MAX(A.x)"] == Decimal(value)
    assert row["AVG(A.x)"] == float(Decimal(value))
    text = json_lines(found.to_batches()[0])[0].split(",")[0].removeprefix('{"SUM(A.x)": ')
    assert Fraction(text) == 3 * Fraction(value)


def test_values_of_a_match_are_exact(engine: str) -> None:
    query = (
        "PATTERN A a+ WHERE a[first].time = 1 AND count(a[]) = 3 RETURN sum(a[].x) AS s, max(a[].x) AS m, "
        "avg(a[].x) AS v, a[last].x * a[first].x AS p, sum(a[].x) + 0.5 AS t"
    )
    found = tl.run(query, events(MONEY, "0.10", "0.20", "0.40"), engine=engine)
    assert [str(kind) for kind in found.schema.types] == [
        "decimal128(38, 2)", "decimal128(10, 2)", "double", "decimal128(38, 4)", "decimal128(38, 2)"
    ]  # fmt: skip
    (row,) = found.to_pylist()
    assert row.pop("v") == float(Fraction(7, 30))
    assert {name: str(value) for name, value in row.items()} == {"s": "0.70", "m": "0.40", "p": "0.0400", "t": "1.20"}


def test_wide_values_of_a_match_are_exact(engine: str) -> None:
    table = events(WIDE, f"{BIG}.01", f"{BIG}.02")
    query = "PATTERN A a+ WHERE count(a[]) = 2 RETURN sum(a[].x) AS s, min(a[].x) AS m, a[last].x - a[first].x AS d"
    (row,) = tl.run(query, table, engine=engine).to_pylist()
    assert row == {"s": Decimal("2469135780246913578.03"), "m": Decimal(f"{BIG}.01"), "d": Decimal("0.01")}


def test_having_and_arithmetic_over_aggregates(engine: str) -> None:
    query = "PATTERN A RETURN SUM(A.x) * 2 AS d, MAX(A.x) - MIN(A.x) AS r HAVING SUM(A.x) = 0.3 AND AVG(A.x) < 0.151"
    (row,) = tl.run(query, events(MONEY, "0.10", "0.20"), engine=engine).to_pylist()
    assert row == {"d": Decimal("0.60"), "r": Decimal("0.10")}
    assert tl.run(query, events(MONEY, "0.10", "0.21"), engine=engine).num_rows == 0


def test_columns_without_values_or_rows(engine: str) -> None:
    for table, rows in ((events(MONEY, None, None), 1), (events(MONEY), 0)):
        found = tl.run("PATTERN A RETURN SUM(A.x), MIN(A.x), COUNT(A.x)", table, engine=engine)
        assert [tuple(row.values()) for row in found.to_pylist()] == [(None, None, 0)] * rows
        assert tl.run("PATTERN A a WHERE a.x > 0.1", table, engine=engine).num_rows == 0


def test_whole_decimals_stay_integers(engine: str) -> None:
    table = events(pa.decimal128(38, 0), BIG, BIG)
    found = tl.run("PATTERN A RETURN SUM(A.x), MIN(A.x)", table, engine=engine)
    assert str(found.schema.field("SUM(A.x)").type) == "int64"
    assert found.to_pylist()[0]["SUM(A.x)"] == 2 * int(BIG)


def test_text_and_tables_show_every_digit(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    found = tl.run("PATTERN A RETURN SUM(A.x)", events(WIDE, f"{BIG}.10", "0.20"), engine=engine)
    assert json_lines(found.to_batches()[0]) == [f'{{"SUM(A.x)": {BIG}.30}}']
    assert csv_lines(found.to_batches()[0]) == [f"{BIG}.30"]
    show([Preview(None, Schema(()), found, 1)], Console(width=80))
    assert f"{BIG}.30" in capsys.readouterr().out


# -------------------------------------------------------------------------------------------------------------- errors


def test_decimals_are_neither_times_nor_types(engine: str) -> None:
    table = events(MONEY, "0.10")
    with pytest.raises(DataError, match="whole numbers or timestamps"):
        tl.run("PATTERN A", table, engine=engine, time="x")
    with pytest.raises(DataError, match="must be text"):
        tl.run("PATTERN A", table, engine=engine, type="x")


def test_digits_that_no_column_can_hold_are_refused(engine: str) -> None:
    table = events(pa.decimal128(38, 38), "0.5", "0.5")
    with pytest.raises(BindError, match="114 digits after the point"):
        tl.run("PATTERN A a RETURN a.x * a.x * a.x", table, engine=engine)
    assert only("PATTERN A a WHERE a.x * a.x * a.x = 0.125 AND a.time = 1 RETURN a.time", table, engine) == 1


# ----------------------------------------------------------------------------------------------- of the local engine


@pytest.mark.parametrize("one_step", [True, False])
@pytest.mark.parametrize("numeric", ["float", "log"])
def test_numbers_other_than_exact(numeric: str, one_step: bool, engine: str) -> None:
    if engine == "reference":
        return
    rule = "" if one_step else "WHERE a.x + b.x < 5"
    query = f"PATTERN SEQ(A a, A b) {rule} RETURN SUM(b.x) AS s, MIN(b.x) AS m, AVG(b.x) AS v, SUM(b.x) * 2 AS d"
    found = tl.run(query, events(MONEY, "0.10", "0.20", "0.40"), engine=engine, numeric=numeric)
    (row,) = found.to_pylist()
    assert {str(kind) for kind in found.schema.types} == {"double"}
    assert row["s"] == pytest.approx(1.0 if numeric == "float" else 0.0)
    assert (row["m"], row["v"], row["d"]) == (0.2, pytest.approx(1 / 3), pytest.approx(2.0))


def test_a_value_of_a_match_that_does_not_fit_is_refused(engine: str) -> None:
    if engine == "reference":
        return
    with pytest.raises(RunError, match=r"does not fit DECIMAL\(38,4\)"):
        tl.run("PATTERN A a RETURN a.x * a.x AS p", events(WIDE, "9" * 30), engine=engine)


def test_states_of_sums_in_doubles_are_told_from_exact_ones(engine: str) -> None:
    """The same query over the same columns, as an earlier version saw them: as doubles."""
    arrow = events(MONEY).schema
    query = parse_query("PATTERN A+ RETURN SUM(A.x) WITHIN 5 SLIDE 5")
    exact = prepare(arrow.empty_table()).schema
    columns = tuple(Column(c.name, Kind.FLOAT if c.name == "x" else c.kind) for c in exact.columns)
    doubles = Schema(columns, exact.time, exact.type, exact.axis)
    streaming_queries = [
        streaming_query_of(plan_query(bind(query, schema)), arrow, "exact") for schema in (exact, doubles)
    ]
    assert streaming_queries[0].fingerprint != streaming_queries[1].fingerprint
