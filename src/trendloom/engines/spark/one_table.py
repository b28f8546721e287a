"""Rows of several queries in one DataFrame: the columns of all of them, and `query`, the name of a row's query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from trendloom.errors import OptionError

QUERY = "query"


def joint_schema(results: Sequence[pa.Schema], *, named: bool) -> pa.Schema:
    """The columns of all queries together; `named`: a column for the names of the queries comes first."""
    try:
        joint = pa.unify_schemas(list(results), promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise OptionError(
            f"the queries cannot share one table of results: {error}", hint="rename columns that differ with AS"
        ) from None
    return pa.schema([pa.field(QUERY, pa.string()), *joint]) if named else joint


def aligned(table: pa.Table, name: str | None, joint: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one query with all columns."""
    columns = [
        pa.repeat(pa.scalar(name, pa.string()), len(table))
        if field.name == QUERY and QUERY not in table.column_names
        else table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in joint
    ]
    yield from pa.table(columns, schema=joint).to_batches()
