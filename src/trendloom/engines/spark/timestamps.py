"""Times on Spark, whatever the zone of the session: local times become moments, and results get their zones back.

Spark's `timestamp` is a moment without a zone; `timestamp_ntz` is a local time. Neither is ever converted by a cast
here, because casts take the session's zone. Java's rules for hours that clocks skip or repeat are those of
`model.zone`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.io import iso
from trendloom.model.zone import UTC

if TYPE_CHECKING:
    from pyspark.sql import Column


def moment_of(local: Column, zone: str = UTC) -> Column:
    """A `timestamp_ntz` as the moment when clocks of the zone show it."""
    date = (F.year(local), F.month(local), F.dayofmonth(local))
    return F.make_timestamp(*date, F.hour(local), F.minute(local), F.date_part(F.lit("SECOND"), local), F.lit(zone))


def time_in_text(text: Column, zone: str | None) -> Column:
    """Text as a time: a moment where there is a zone for text that names none, else a time without a zone, in UTC."""
    zoned = text.rlike(iso.CLOCK) & text.rlike(iso.ZONE)
    moment, local = F.try_to_timestamp(text), text.try_cast("timestamp_ntz")
    if zone is not None:
        return F.when(zoned, moment).otherwise(moment_of(local, zone))
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return F.when(zoned, F.timestamp_add("MICROSECOND", F.unix_micros(moment), epoch)).otherwise(local)


# ----------------------------------------------------------------------------------------------- Arrow types


def in_utc(schema: pa.Schema) -> pa.Schema:
    """The types as Spark knows them: moments have no zone of their own."""
    return pa.schema([pa.field(f.name, _moment_type(f.type, UTC), metadata=f.metadata) for f in schema])


def _moment_type(kind: pa.DataType, zone: str) -> pa.DataType:
    return pa.timestamp("us", zone) if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def shown_in(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The same rows, moments in the zones of these types.

    Nothing else is changed, and nothing but zones is cast: Arrow's cast breaks structs with columns of NULLs.
    """
    for at, field in enumerate(wanted):
        if table.schema.field(at).type != field.type:
            column = table.column(at).combine_chunks()
            shown = _events(column, field.type) if field.name == "events" else _shown(column, field.type)
            table = table.set_column(at, field.name, shown)
    return table


def _events(array: pa.Array, kind: pa.DataType) -> pa.Array:
    fields = [kind.value_type.field(at) for at in range(kind.value_type.num_fields)]
    parts = [_shown(part, field.type) for field, part in zip(fields, array.values.flatten(), strict=True)]
    values = pa.StructArray.from_arrays(parts, names=[field.name for field in fields])
    return pa.ListArray.from_arrays(array.offsets, values)


def _shown(array: pa.Array, kind: pa.DataType) -> pa.Array:
    zone = kind.tz if pa.types.is_timestamp(kind) and pa.types.is_timestamp(array.type) else None
    return array if zone is None else array.cast(_moment_type(array.type, zone))
