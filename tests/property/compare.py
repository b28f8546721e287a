"""Compare the rows of two engines: as multisets, integers and decimals exactly, doubles up to rounding."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa


def canonical(value: Any) -> Any:
    """A value that compares and sorts: doubles rounded to nine digits, NULL first."""
    if value is None:
        return (0, "")
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, Decimal) and value == int(value):
        value = int(value)
    if isinstance(value, int):
        return (2, value)
    if isinstance(value, Decimal):
        return (2, value)
    if isinstance(value, float):
        return (2, value) if math.isinf(value) or value == 0 else (2, float(f"{value:.9g}"))
    if isinstance(value, dict):
        return (3, tuple((name, canonical(part)) for name, part in sorted(value.items())))
    if isinstance(value, list):
        return (4, tuple(canonical(part) for part in value))
    return (5, str(value))


def rows_of(table: pa.Table | Iterable[dict[str, Any]]) -> list[Any]:
    """The rows in one canonical order; the order of events of equal time inside a match is free."""
    rows = table.to_pylist() if isinstance(table, pa.Table) else list(table)
    return sorted(canonical(_ordered(row)) for row in rows)


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(row.get("events"), list):
        return row
    events = sorted(row["events"], key=lambda event: (event["time"], str(event["id"]), event["var"]))
    return {**row, "events": events}
