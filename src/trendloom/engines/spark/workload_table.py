"""Rows of several queries in one DataFrame: the columns of all of them, and `query`, the name of a row's query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from trendloom.runtime.result_columns import joint_schema_of, with_columns

QUERY = "query"
DIGITS_ON_SPARK = 38
"""Digits of the widest decimals of Spark."""


def joint_schema(results: Sequence[pa.Schema], *, named: bool) -> pa.Schema:
    """The columns of all queries together; `named`: a column for the names of the queries comes first."""
    joint = joint_schema_of(results, most_digits=DIGITS_ON_SPARK)
    return pa.schema([pa.field(QUERY, pa.string()), *joint]) if named else joint


def aligned(table: pa.Table, name: str | None, joint: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one query with all columns."""
    if QUERY in joint.names and QUERY not in table.column_names:
        table = table.add_column(0, QUERY, pa.repeat(pa.scalar(name, pa.string()), len(table)))
    yield from with_columns(table, joint).to_batches()
