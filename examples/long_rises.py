"""Find the longest rises in real server metrics, and how many ways lead from a value to one twice as high.

    python examples/long_rises.py

Needs no Spark. The queries are in long_rises.tql, the data are a part of the Numenta Anomaly Benchmark (see
data/README.md). How it is done: docs/trends.md. The first run compiles the kernels, which takes a minute.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

import trendloom as tl

HERE = Path(__file__).resolve().parent
METRICS = HERE / "data" / "nab_metrics.parquet"
QUERIES = (HERE / "long_rises.tql").read_text()
SHOWN = 5

console = Console(width=120, highlight=False)


def main() -> None:
    for name, show in (("rises", show_longest), ("doubled", show_most_ways)):
        began = time.perf_counter()
        rows = tl.run(QUERIES, METRICS, query=name)
        console.print(f"[bold]{name}[/]: {len(rows):,} rows, {time.perf_counter() - began:.1f} s")
        show(rows)


def longest(rows: pa.Table, number: int = SHOWN) -> list[dict[str, Any]]:
    """The trends with the most events, one of each series."""
    order = pc.sort_indices(pc.list_value_length(rows["events"]), sort_keys=[("", "descending")]).to_pylist()
    series = rows["series"].to_numpy(zero_copy_only=False)
    first: dict[str, int] = {}
    for row in order:
        first.setdefault(series[row], row)
    found: list[dict[str, Any]] = rows.take(list(first.values())[:number]).to_pylist()
    return found


def most_ways(rows: pa.Table, number: int = SHOWN) -> list[dict[str, Any]]:
    """The rows that stand for the most matches."""
    found: list[dict[str, Any]] = rows.sort_by([("matches", "descending")]).slice(0, number).to_pylist()
    return found


def show_longest(rows: pa.Table) -> None:
    table = Table("series", "from", "to", "values", "lowest", "highest")
    for row in longest(rows):
        events = row["events"]
        values = (f"{events[0]['value']:.4g}", f"{events[-1]['value']:.4g}")
        table.add_row(row["series"], str(events[0]["time"]), str(events[-1]["time"]), str(len(events)), *values)
    console.print(table)


def show_most_ways(rows: pa.Table) -> None:
    table = Table("series", "from", "value", "to", "value", "ways")
    for row in most_ways(rows):
        low = next(event for event in row["events"] if event["var"] == "low")
        high = next(event for event in row["events"] if event["var"] == "high")
        ends = [str(cell) for end in (low, high) for cell in (end["time"], f"{end['value']:.4g}")]
        table.add_row(row["series"], *ends, f"{row['matches']:,}")
    console.print(table)


if __name__ == "__main__":
    main()
