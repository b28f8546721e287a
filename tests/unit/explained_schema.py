"""The columns of the queries whose plans are explained in tests."""

from __future__ import annotations

from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis

COLUMNS = (
    Column("time", Kind.TIME),
    Column("type", Kind.STRING),
    Column("user", Kind.STRING),
    Column("x", Kind.INT),
    Column("y", Kind.FLOAT),
)
SCHEMA = Schema(COLUMNS, axis=TimeAxis.timestamps())
