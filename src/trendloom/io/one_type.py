"""Events without a column of types: where the queries speak of one type only, every event is of that type.

The column is added, so that events have a type in results as they have everywhere. It is never guessed where it could
be wrong: if some column holds the word that the query calls its type, that column is named instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.errors import DataError, QueryNote, option
from trendloom.expr.vectors import kind_of
from trendloom.model.schema import Kind


def with_one_type(table: pa.Table, name: str, wanted: Sequence[str]) -> tuple[pa.Table, QueryNote]:
    """The table with a column `name` of the one type that is wanted, and a note that says so."""
    only = the_only_type(name, wanted)
    for other in table.column_names:
        column = table.column(other)
        if kind_of(column.type) is Kind.STRING and pc.any(pc.equal(column.cast(pa.large_string()), only)).as_py():
            raise types_elsewhere(name, other, only)
    types = pa.chunked_array([pa.repeat(pa.scalar(only, pa.string()), len(table))])
    note = QueryNote(
        f"the events have no column '{name}': every one is taken for a '{only}', the only type of the query",
        hint=f"if a column holds types, name it with {option('type')}",
    )
    return table.append_column(name, types), note


def the_only_type(name: str, wanted: Sequence[str]) -> str:
    """The one type, or an error that tells how to make a column of several."""
    if len(wanted) == 1:
        return wanted[0]
    first, second, *_ = sorted(wanted)
    listed = ", ".join(f"'{one}'" for one in sorted(wanted)[:4]) + (" ..." if len(wanted) > 4 else "")
    raise DataError(
        f"there is no column '{name}' for the type of events, and the query names several types: {listed}",
        hint=f"name the column that holds them with {option('type')}, or add one that says of every event which it is, "
        f"for example in SQL: CASE WHEN amount < 0 THEN '{first}' ELSE '{second}' END AS {name}",
    )


def types_elsewhere(name: str, other: str, only: str) -> DataError:
    """The refusal to guess where another column seems to hold the types."""
    return DataError(
        f"there is no column '{name}' for the type of events, but column '{other}' holds '{only}'",
        hint=f"if that is the type, write {option('type', other)}",
    )
