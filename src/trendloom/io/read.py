"""Read events from wherever they are: files of CSV, JSON lines or Parquet, one or many, or a frame in memory.

`open_events` says what a source is without reading more than it must; its `read` gives one Arrow table. Files are found
by `files`, Parquet is read by `parquet`, text by `text_files`; most frames offer the Arrow stream protocol, so neither
pandas nor polars is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import DataError, OptionError, option
from trendloom.io.convert import parse_schema
from trendloom.io.files import SUPPORTED, find_files, places_of, refuse_duplicates
from trendloom.io.parquet import ParquetFiles, open_parquet
from trendloom.io.text_files import TextFiles


@dataclass(frozen=True, eq=False)
class InMemory:
    """A table that is there already."""

    table: pa.Table

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or those of its columns that are named and there."""
        if columns is None:
            return self.table
        return self.table.select([name for name in self.table.column_names if name in set(columns)])


Opened: TypeAlias = ParquetFiles | TextFiles | InMemory


def open_events(source: object, *, schema: str | None = None, time_zone: str | None = None) -> Opened:
    """What the source is: its files are found and fit together, but no event of a file is read.

    `schema` says what columns of text files are ("id string, ..."); `time_zone` is that of times that do not name one.
    """
    if isinstance(source, ParquetFiles | TextFiles | InMemory):
        return source
    named = {} if schema is None else parse_schema(schema)
    places = places_of(source)
    if places is None:
        refuse_schema(list(named), "a frame")
        table = _read_frame(source)
        refuse_duplicates(table.column_names, "the table")
        return InMemory(plain_columns(table))
    found = find_files(places)
    if found.kind != "parquet":
        return TextFiles(found.kind, found.files, named, time_zone or "UTC")
    keys = {name for file in found.files for name, _ in file.keys}
    refuse_schema([name for name in named if name not in keys], "Parquet")
    return open_parquet(found.files, named, time_zone or "UTC")


def read(source: object, *, columns: Sequence[str] | None = None, schema: str | None = None) -> pa.Table:
    """The events of a source as an Arrow table.

    `columns` leaves out all others, before reading them where the format allows it; names that are not there are
    ignored: later checks report them with more context.
    """
    return open_events(source, schema=schema).read(columns)


def refuse_schema(names: list[str], what: str) -> None:
    """Columns that have types already are not given others."""
    if names:
        raise OptionError(
            f"{option('schema')} names column '{names[0]}', but {what} has types of its own",
            hint="a schema is for CSV and JSON lines, and for columns that folders give; convert the column instead",
        )


# ------------------------------------------------------------------------------------------- how values are packed


def plain_columns(table: pa.Table) -> pa.Table:
    """Replace views of text, bytes and lists, and run-end encoded values, by types that every engine supports."""
    for at, field in enumerate(table.schema):
        wanted = _plain(field.type)
        if wanted != field.type:
            column = table.column(at)
            chunks = [_repacked(chunk, wanted) for chunk in column.chunks]
            table = table.set_column(at, field.name, pa.chunked_array(chunks, wanted))
    return table


def _plain(kind: pa.DataType) -> pa.DataType:
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if types.is_dictionary(kind) and _plain(kind.value_type) != kind.value_type:
        return pa.dictionary(kind.index_type, _plain(kind.value_type), kind.ordered)
    if types.is_list_view(kind) or types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_large_list_view(kind) or types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind


def _repacked(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Built anew where Arrow has no cast, or one that does not keep the offsets (lists that are views)."""
    kind = array.type
    if kind == wanted:
        return array
    if types.is_run_end_encoded(kind):
        return _repacked(pc.run_end_decode(array), wanted)
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, _repacked(array.dictionary, wanted.value_type))
    if types.is_struct(kind):
        parts = [_repacked(part, field.type) for part, field in zip(array.flatten(), wanted, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=array.is_null())
    if types.is_nested(kind):
        ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()))
        large = types.is_large_list(wanted)
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int64() if large else pa.int32())
        values = _repacked(array.flatten(), wanted.value_type)
        build = pa.LargeListArray if large else pa.ListArray
        return build.from_arrays(offsets, values, type=wanted, mask=array.is_null())
    return array.cast(wanted)


# ------------------------------------------------------------------------------------------------ frames


def _read_frame(source: object) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    library = type(source).__module__.partition(".")[0]
    try:
        if library == "pandas" and hasattr(source, "columns"):
            return _from_pandas(source)
        if library == "polars" and hasattr(source, "to_arrow") and hasattr(source, "columns"):
            return source.to_arrow()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source).read_all()
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise DataError(f"the {library} frame cannot become an Arrow table: {problem}") from problem
    raise DataError(f"cannot read events from {_described(source)}", hint=_frame_hint(library))


def _from_pandas(frame: object) -> pa.Table:
    """Refuse column names that are not text: pandas allows them, a query cannot write them."""
    odd = [name for name in frame.columns if not isinstance(name, str)]  # type: ignore[attr-defined]
    if odd:
        raise DataError(f"column names must be text, not {odd[0]!r}", hint="frame.columns = frame.columns.map(str)")
    refuse_duplicates(list(frame.columns), "the frame")  # type: ignore[attr-defined]
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def _described(source: object) -> str:
    name = f"{type(source).__module__}.{type(source).__qualname__}".removeprefix("builtins.")
    return "nothing (None)" if source is None else f"a {name}"


def _frame_hint(library: str) -> str:
    if library == "pyspark":
        return "for a Spark DataFrame use trendloom.spark.detect"
    if library == "polars":
        return "give a DataFrame: call .collect() on a LazyFrame first"
    return f"events come from {SUPPORTED}, a pyarrow table, or a pandas or polars frame"


def with_times_of_index(source: Any, time: str, low: str | None = None) -> object:
    """A pandas frame with the times of its index as a column; anything else, and times between bounds, as they are.

    Time series mostly have their times in the index. It becomes the column `time`, if the frame has none of that name;
    pandas itself is not imported. Cost: the frame is copied once by pandas, column by column.
    """
    if type(source).__module__.partition(".")[0] != "pandas" or not hasattr(source, "columns"):
        return source
    if low is not None or time in source.columns:
        return source
    index = source.index
    if time in index.names:
        return source.reset_index(level=time)
    if type(index).__name__ != "DatetimeIndex":
        return source
    if index.name is None:
        return source.reset_index(names=time)
    raise DataError(
        f"there is no column '{time}' for the time of events, but the index '{index.name}' holds times",
        hint=f"{option('time', str(index.name))} takes the index; frame.reset_index() makes a column of it",
    )
