"""Read events from wherever they are: CSV, JSON lines, Parquet, a folder of Parquet, or a frame in memory.

Everything becomes one Arrow table; the way is chosen by the ending of the name, or by what the object offers (the
Arrow stream protocol serves most frames, so neither pandas nor polars is imported here). CSV and JSON lines have no
types: integers, numbers, booleans and ISO-8601 times are recognised. An empty CSV field is NULL, `""` is empty text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json
import pyarrow.parquet as pq

from trendloom.errors import DataError
from trendloom.io import iso

_Read = TypeVar("_Read")

_SUPPORTED = "a .csv, .jsonl or .parquet file, or a folder of .parquet files"


def read(source: object, *, columns: Sequence[str] | None = None) -> pa.Table:
    """The events of a path or frame as an Arrow table.

    `columns` leaves out all others, before reading them where the format allows it; names that are not there are
    ignored, since whoever needs them says so better.
    """
    if isinstance(source, str | os.PathLike):
        table = _read_path(Path(source), columns)
        _refuse_duplicates(table.column_names, str(source))
    else:
        table = _read_frame(source)
        _refuse_duplicates(table.column_names, "the table")
    if columns is None:
        return table
    return table.select([name for name in table.column_names if name in set(columns)])


def parquet_path(source: object) -> Path | None:
    """The path, where the source is a Parquet file or a folder of them that fit together; None: it is something else.

    For engines that read Parquet themselves: what `read` would refuse is refused here, without reading the events.
    """
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source)
    if path.is_dir():
        _guarded(path, lambda: _refuse_mixed_schemas(_parquet_files(path)))
        return path
    if path.suffix.lower() not in (".parquet", ".pq") or not path.exists():
        return None
    _types(path)
    return path


def parquet_files(path: Path) -> list[Path]:
    """The files of what `parquet_path` found."""
    return _guarded(path, lambda: _parquet_files(path)) if path.is_dir() else [path]


def parquet_columns(path: Path) -> pa.Schema:
    """The columns of what `parquet_path` found, from the footers alone."""
    return _guarded(path, lambda: _dataset(path).schema)


# ------------------------------------------------------------------------------------------------- files


def _read_path(path: Path, columns: Sequence[str] | None) -> pa.Table:
    if path.is_dir():
        return _guarded(path, lambda: _read_folder(path, columns))
    if not path.exists():
        raise DataError(f"{path} does not exist", hint=_neighbours(path))
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        ending = f"files that end in '{path.suffix}'" if path.suffix else "files without an ending"
        raise DataError(f"{path}: cannot read {ending}", hint=f"events come from {_SUPPORTED}")
    return _guarded(path, lambda: reader(path, columns))


def _guarded(path: Path, reader: Callable[[], _Read]) -> _Read:
    """Arrow's and the system's complaints, with the path and in our words."""
    try:
        return reader()
    except PermissionError as problem:
        raise DataError(f"{path} may not be read", hint="check the permissions of the file") from problem
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        reason = str(problem).strip().split("\n")[0]
        raise DataError(f"{path} cannot be read: {reason}", hint=_READING_HINTS.get(path.suffix.lower())) from problem


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    close = sorted(entry.name for entry in path.parent.iterdir() if entry.stem == path.stem and entry != path)
    return f"there is {', '.join(close[:3])} in that folder" if close else f"events come from {_SUPPORTED}"


def _read_csv(path: Path, columns: Sequence[str] | None) -> pa.Table:
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty", hint="a CSV file begins with a line of column names")
    names = _csv_header(path)
    _refuse_duplicates(names, str(path))
    wanted = None if columns is None else [name for name in names if name in set(columns)]
    convert = pa.csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False, include_columns=wanted
    )
    return pa.csv.read_csv(path, parse_options=_CSV, convert_options=convert)


_CSV = pa.csv.ParseOptions(newlines_in_values=True)


def _csv_header(path: Path) -> list[str]:
    with pa.csv.open_csv(path, parse_options=_CSV) as reader:
        return list(reader.schema.names)


def _read_json_lines(path: Path, columns: Sequence[str] | None) -> pa.Table:
    if path.stat().st_size == 0:
        return pa.table({})
    table = pa.json.read_json(path)
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            parsed = _times_in_text(table.column(index))
            if parsed is not None:
                table = table.set_column(index, field.name, parsed)
    return table


def _times_in_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column as timestamps if all its values are ISO-8601 times (Arrow itself knows the plain form only)."""
    values = pc.drop_null(column.slice(0, 1000))
    if len(values) == 0 or not iso.looks_like_time(values[0].as_py()):
        return None
    parsed = iso.parse(column)
    return None if isinstance(parsed, iso.Unparsable) else parsed


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pa.Table:
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        _refuse_duplicates(names, str(path))
        return file.read(columns=None if columns is None else [name for name in names if name in set(columns)])


def _read_folder(path: Path, columns: Sequence[str] | None) -> pa.Table:
    _refuse_mixed_schemas(_parquet_files(path))
    dataset = _dataset(path)
    names = dataset.schema.names
    return dataset.to_table(columns=None if columns is None else [name for name in names if name in set(columns)])


def _dataset(path: Path) -> pa.dataset.Dataset:
    return pa.dataset.dataset(path, format="parquet", partitioning="hive", exclude_invalid_files=False)


def _parquet_files(folder: Path) -> list[Path]:
    files = [Path(file) for file in _dataset(folder).files]
    if not files:
        raise DataError(f"{folder} holds no Parquet files", hint=f"events come from {_SUPPORTED}")
    return files


_Reader = Callable[[Path, Sequence[str] | None], pa.Table]
_READERS: dict[str, _Reader] = {
    ".csv": _read_csv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json_lines,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
}
_READING_HINTS = {
    ".csv": "a CSV file has a line of column names, then one event per line with as many fields",
    ".jsonl": "one JSON object per line, the same kind of value under the same key everywhere",
    ".ndjson": "one JSON object per line, the same kind of value under the same key everywhere",
    ".json": "one JSON object per line; a file with one big JSON list must be rewritten first",
    ".parquet": "is it complete, and really a Parquet file?",
}


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
    """pandas knows how to say names that are not text; a query does not."""
    odd = [name for name in frame.columns if not isinstance(name, str)]  # type: ignore[attr-defined]
    if odd:
        raise DataError(f"column names must be text, not {odd[0]!r}", hint="frame.columns = frame.columns.map(str)")
    _refuse_duplicates(list(frame.columns), "the frame")  # type: ignore[attr-defined]
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def _described(source: object) -> str:
    name = f"{type(source).__module__}.{type(source).__qualname__}".removeprefix("builtins.")
    return "nothing (None)" if source is None else f"a {name}"


def _frame_hint(library: str) -> str:
    if library == "pyspark":
        return "for a Spark DataFrame use trendloom.spark.detect"
    if library == "polars":
        return "give a DataFrame: call .collect() on a LazyFrame first"
    return f"events come from {_SUPPORTED}, a pyarrow table, or a pandas or polars frame"


# ------------------------------------------------------------------------------------------------ checks


def _refuse_duplicates(names: Sequence[str], where: str) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataError(f"{where} has more than one column '{twice[0]}'", hint="rename or drop all but one of them")


def _refuse_mixed_schemas(files: Sequence[Path]) -> None:
    """All files of a folder have the same columns; their order means nothing."""
    first = _types(files[0])
    for file in files[1:]:
        other = _types(file)
        for name in [*first, *other]:
            if first.get(name) != other.get(name):
                difference = f"column '{name}' is {_shown(first.get(name))} in {files[0].name}"
                raise DataError(
                    f"{file.parent}: {difference}, but {_shown(other.get(name))} in {file.name}",
                    hint="write the files with one schema, or read them apart",
                )


def _types(file: Path) -> dict[str, pa.DataType]:
    schema = _guarded(file, lambda: pq.read_schema(file))
    _refuse_duplicates(schema.names, str(file))
    return {field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema}


def _shown(column_type: pa.DataType | None) -> str:
    return "missing" if column_type is None else str(column_type)
