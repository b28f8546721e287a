"""Count the trends in real server metrics, more than anybody could list, and look at the days that have most of them.

    python examples/trend_counts.py

Needs no Spark. The queries are in trend_counts.tql, the data are a part of the Numenta Anomaly Benchmark (see
data/README.md). How it is done: docs/aggregation.md. The first run compiles the kernels, which takes a minute.
"""

from __future__ import annotations

import datetime
import math
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import trendloom as tl

HERE = Path(__file__).resolve().parent
METRICS = HERE / "data" / "nab_metrics.parquet"
QUERIES = (HERE / "trend_counts.tql").read_text()
COUNTED = {"rising": "trends", "climbing": "climbs", "idle_then_busy": "ways", "detours": "detours"}

console = Console(width=120, highlight=False)

Row = dict[str, Any]


def main() -> None:
    for name, column in COUNTED.items():
        began = time.perf_counter()
        rows = count(name)
        seconds = time.perf_counter() - began
        show(f"{name}: {len(rows):,} series and windows, {seconds:.1f} s", most(rows, column), column)
    (best,) = most(count("rising"), "trends", 1)
    check(best)


def count(name: str, numeric: str = "log") -> list[Row]:
    """The rows of one query. As logarithms: a day can have more trends than a double can hold."""
    rows: list[Row] = tl.run(QUERIES, METRICS, query=name, numeric=numeric).to_pylist()
    return rows


def most(rows: list[Row], column: str, number: int = 3) -> list[Row]:
    """The rows with the highest counts, one for each series."""
    best: dict[str, Row] = {}
    for row in sorted(rows, key=lambda each: (-each[column], each["window_start"])):
        best.setdefault(row["series"], row)
    return list(best.values())[:number]


def show(title: str, rows: list[Row], column: str) -> None:
    table = Table(title=title, title_justify="left")
    for head in ("series", "from", column):
        table.add_column(head, justify="right" if head == column else "left")
    for row in rows:
        table.add_row(row["series"], f"{row['window_start']:%Y-%m-%d %H:%M}", f"10^{row[column]:.2f}")
    console.print(table)


def check(row: Row) -> None:
    """Count one day again, with a plain program over Python's integers, and compare to the last digit."""
    same = [each for each in count("rising", "exact") if key(each) == key(row)]
    values = values_of(row["series"], row["window_start"])
    found, plain = int(same[0]["trends"]), rising_pairs_or_longer(values)
    assert found == plain
    assert math.isclose(math.log10(found), row["trends"])
    console.print(f"{row['series']} on {row['window_start']:%Y-%m-%d}: {len(values)} values,")
    console.print(f"{found:,} rising trends, and a plain program counts as many.")


def key(row: Row) -> tuple[str, datetime.datetime]:
    return row["series"], row["window_start"]


def values_of(series: str, day: datetime.datetime) -> list[tuple[datetime.datetime, float]]:
    rows = pq.read_table(METRICS, filters=[("series", "=", series)]).to_pylist()
    until = day + datetime.timedelta(days=1)
    return sorted((row["time"], row["value"]) for row in rows if day <= row["time"] < until)


def rising_pairs_or_longer(values: list[tuple[datetime.datetime, float]]) -> int:
    """Σ over all values of the rising trends of two or more that end there: quadratic, and obviously right."""
    ending: list[int] = []
    for at, (moment, value) in enumerate(values):
        below = (n for n, (before, less) in zip(ending, values[:at], strict=True) if before < moment and less < value)
        ending.append(1 + sum(below))
    return sum(ending) - len(values)


if __name__ == "__main__":
    main()
