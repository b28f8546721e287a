"""Names of columns: every one is text, and no two are the same."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trendloom.errors import DataError


def refuse_duplicates(names: Sequence[str], where: str) -> None:
    """Two columns of one name: nobody could say which is meant."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataError(f"{where} has more than one column '{twice[0]}'", hint="rename or drop all but one of them")


def decode_names(columns: pa.Schema | pa.DataType) -> None:
    """Look at every name, inside of nested columns too: Arrow fails at the first that is not UTF-8."""
    fields = columns if isinstance(columns, pa.Schema) else [columns.field(at) for at in range(columns.num_fields)]
    for field in fields:
        field.name.encode()
        if pa.types.is_nested(field.type):
            decode_names(field.type)
