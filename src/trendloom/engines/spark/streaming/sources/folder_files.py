"""Files of a live folder that tasks read themselves, as `trendloom run` does: CSV, and Parquet with nanoseconds.

Spark reads CSV by position, whatever its header, and times in nanoseconds not at all. Here Spark only finds the
files; a task reads each of them with Arrow, block by block, and goes by the names in the file's own header. Further
columns are left out. A line that cannot be read, or that lacks a column, stops the stream (`strict`) or becomes an
event without a time that carries its text and its file.
Cost: a file is read by one task; Arrow parses text several times faster than Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from trendloom.engines.spark.errors import WHOLE_MICROSECONDS
from trendloom.engines.spark.streaming.sources import MARKS
from trendloom.errors import DataError, OptionError, did_you_mean, option
from trendloom.io.convert import ConversionFailure, convert
from trendloom.io.timestamps import Unparsable, parse_iso
from trendloom.io.write import csv_lines
from trendloom.model.time import UTC

if TYPE_CHECKING:
    from trendloom.engines.spark.tasks import Batches

LISTED = "path string, modificationTime timestamp, length long, content binary"
"""The columns of Spark's listing of files."""

BLOCK = 4 << 20
ROWS = 100_000


@dataclass(frozen=True)
class Dialect:
    """How the CSV is written: the options of Spark's reader that Arrow has, too."""

    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    encoding: str = "utf8"
    header: bool = True
    null: str = ""

    def parse_options(self, handler: Any) -> pa.csv.ParseOptions:
        return pa.csv.ParseOptions(
            delimiter=self.delimiter, quote_char=self.quote or False, escape_char=self.escape or False,
            newlines_in_values=True, invalid_row_handler=handler,
        )  # fmt: skip


OF_SPARK = {
    "sep": "delimiter", "delimiter": "delimiter", "quote": "quote", "escape": "escape", "encoding": "encoding",
    "charset": "encoding", "header": "header", "nullvalue": "null",
}  # fmt: skip
OF_FILES = (
    "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly", "cleansource",
    "sourcearchivedir", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "maxcachedfiles",
    "discardcachedinputratio", "ignoremissingfiles", "ignorecorruptfiles", "basepath",
)  # fmt: skip


def dialect_of(options: Mapping[str, str]) -> tuple[Dialect, dict[str, str]]:
    """The options of a CSV source, divided into how it is written and how its files are found."""
    dialect: dict[str, Any] = {}
    files = {}
    for name, value in options.items():
        if name.lower() in OF_FILES:
            files[name] = value
        elif name.lower() in OF_SPARK:
            dialect[OF_SPARK[name.lower()]] = value
        else:
            raise OptionError(
                f"CSV has no option '{name}' on a live stream",
                hint=did_you_mean(name.lower(), (*OF_SPARK, *OF_FILES)),
            )
    if "header" in dialect:
        dialect["header"] = dialect["header"].lower() == "true"
    return Dialect(**dialect), files


@dataclass(frozen=True)
class FileReader:
    """Callable of a task: reads the files that its rows list, and yields their events."""

    kind: str
    columns: pa.Schema
    times: tuple[str, ...]
    strict: bool
    dialect: Dialect = field(default_factory=Dialect)
    zone: str = UTC  # of times without one

    @property
    def result(self) -> pa.Schema:
        marks = [] if self.strict else [pa.field(name, pa.string()) for name in MARKS]
        return pa.schema([*self.columns, *marks])

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for row in batch.to_pylist():
                yield from self.events(row["path"], row["content"])

    def events(self, path: str, content: bytes | None = None) -> Batches:
        """The events of one file; `content` is given where only Spark can reach it."""
        name = re.sub(r"^file:/+", "/", path)
        try:
            yield from (self._csv if self.kind == "csv" else self._parquet)(name, content)
        except (pa.ArrowException, OSError) as problem:
            reason = str(problem).strip().partition("\n")[0]
            yield from self._set_apart(name, [f"(all or the rest of the file: {reason})"], reason)

    # ---------------------------------------------------------------------------------------------- Parquet

    def _parquet(self, name: str, content: bytes | None) -> Batches:
        with pq.ParquetFile(pa.BufferReader(content) if content is not None else pa.OSFile(name)) as file:
            wanted = [one for one in self.columns.names if one in file.schema_arrow.names]
            for batch in file.iter_batches(ROWS, columns=wanted, use_threads=False):
                yield self._complete([self._cast(batch, one, name) for one in self.columns], batch.num_rows)

    def _cast(self, batch: pa.RecordBatch, wanted: pa.Field, name: str) -> pa.Array:
        if wanted.name not in batch.schema.names:
            return pa.nulls(batch.num_rows, wanted.type)
        try:
            return batch.column(wanted.name).cast(wanted.type)
        except pa.ArrowInvalid as problem:
            raise DataError(f"{name}: column '{wanted.name}': {problem}", hint=WHOLE_MICROSECONDS) from problem

    # -------------------------------------------------------------------------------------------------- CSV

    def _csv(self, name: str, content: bytes | None) -> Batches:
        header = self._header(name, content)
        if header is None:
            return
        reason = self._unfit(header)
        broken: list[str] = []
        with self._lines(name, content, header, broken) as reader:
            for batch in _blocks(reader):
                yield from self._set_apart(name, broken, "its number of fields is not that of the header")
                broken.clear()
                yield from self._checked(name, batch, reason)
        yield from self._set_apart(name, broken, "its number of fields is not that of the header")

    def _header(self, name: str, content: bytes | None) -> list[str] | None:
        """The names in the first line; None: the file is empty."""
        if not self.dialect.header:
            return list(self.columns.names)
        with _stream(name, content) as stream:
            if not stream.read(1):
                return None
        with self._lines(name, content, None, []) as reader:
            return list(reader.schema.names)

    def _lines(
        self, name: str, content: bytes | None, header: list[str] | None, broken: list[str]
    ) -> pa.csv.CSVStreamingReader:
        """The fields of all lines as bytes: what cannot be read shall spoil no more than its own line."""

        def set_apart(row: pa.csv.InvalidRow) -> str:
            broken.append(row.text)
            return "skip"

        read = pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, encoding=self.dialect.encoding)
        if header is not None and not self.dialect.header:
            read.column_names = header
        convert = pa.csv.ConvertOptions(
            null_values=list({"", self.dialect.null}), strings_can_be_null=True, quoted_strings_can_be_null=False,
            column_types={one: pa.binary() for one in header or ()},
        )  # fmt: skip
        return pa.csv.open_csv(
            _stream(name, content), read_options=read, convert_options=convert,
            parse_options=self.dialect.parse_options(set_apart),
        )  # fmt: skip

    def _unfit(self, header: list[str]) -> str | None:
        """Why no line of a file with this header can be read."""
        missing = [one for one in self.columns.names if one not in header]
        if missing:
            close = did_you_mean(missing[0], [one for one in header if one not in self.columns.names])
            return f"its header has no column '{missing[0]}'" + (f" ({close})" if close else "")
        twice = [one for one in self.columns.names if header.count(one) > 1]
        return f"its header has column '{twice[0]}' more than once" if twice else None

    def _checked(self, name: str, batch: pa.RecordBatch, reason: str | None) -> Batches:
        """The events of some lines, and what could not be read of them."""
        texts = [decoded(column) for column in batch.columns]
        fields = pa.RecordBatch.from_arrays([text for text, _ in texts], names=batch.schema.names)
        if reason is not None:
            yield from self._set_apart(name, csv_lines(fields), reason)
            return
        place = {one: at for at, one in enumerate(batch.schema.names)}
        columns, good = [], pa.repeat(True, len(fields))
        for one in self.columns:
            is_time = one.name in self.times
            text, sound = texts[place[one.name]]
            values, fits = converted(text, one.type, is_time=is_time, zone=self.zone)
            columns.append(values)
            fits = pc.and_(sound, fits)
            if self.strict and not pc.all(fits).as_py():
                reason = f"column '{one.name}' is not {'a time' if is_time else f'of type {one.type}'}"
                yield from self._set_apart(name, csv_lines(fields.filter(pc.invert(fits))), reason)
            good = pc.and_(good, fits)
        if not pc.all(good).as_py():
            yield from self._set_apart(name, csv_lines(fields.filter(pc.invert(good))), "")
        yield self._complete(columns, len(fields)).filter(good)

    # --------------------------------------------------------------------------------------------- both

    def _complete(self, columns: list[pa.Array], rows: int) -> pa.RecordBatch:
        marks = [] if self.strict else [pa.nulls(rows, pa.string())] * len(MARKS)
        return pa.RecordBatch.from_arrays([*columns, *marks], schema=self.result)

    def _set_apart(self, name: str, lines: list[str], reason: str) -> Batches:
        """Lines as events without a time, or as the end of the stream."""
        if not lines:
            return
        if self.strict:
            raise DataError(
                f"an event cannot be read: {name}: {lines[0]!r}: {reason}",
                hint=f"correct it where it lies, or give {option('late_to', 'FOLDER')}: such events are then "
                "counted and put there",
            )
        nothing = [pa.nulls(len(lines), one.type) for one in self.columns]
        marks = [pa.array(lines, pa.string()), pa.array([name] * len(lines), pa.string())]
        yield pa.RecordBatch.from_arrays([*nothing, *marks], schema=self.result)


def _stream(name: str, content: bytes | None) -> Any:
    """The bytes of a file, decompressed where its name says so."""
    if content is None:
        return pa.input_stream(name, compression="detect")
    try:
        codec = pa.Codec.detect(name).name
    except ValueError:
        codec = None
    return pa.input_stream(pa.BufferReader(content), compression=codec)


def _blocks(reader: pa.csv.CSVStreamingReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        if batch.num_rows:
            yield batch


def decoded(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bytes as text, and where they are text in UTF-8."""
    try:
        return column.cast(pa.string()), pa.repeat(True, len(column))
    except pa.ArrowInvalid:
        values = column.to_pylist()
        sound = [value is None or value.decode(errors="replace").encode() == value for value in values]
        texts = [None if value is None else value.decode(errors="replace") for value in values]
        return pa.array(texts, pa.string()), pa.array(sound, pa.bool_())


def converted(
    text: pa.Array, kind: pa.DataType, *, is_time: bool = False, zone: str = UTC
) -> tuple[pa.Array, pa.Array]:
    """Text as values of a type, and where it fits; what does not is NULL. Times that stay text must be times."""
    every = pa.repeat(True, len(text))
    if pa.types.is_string(kind) and not is_time:
        return text, every
    trimmed = pc.utf8_trim_whitespace(text)
    try:
        values = _cast(trimmed, kind, zone)
    except pa.ArrowInvalid:
        fitting = [value for value in pc.unique(trimmed).to_pylist() if value is not None and _fits(value, kind, zone)]
        fits = pc.is_in(trimmed, value_set=pa.array(fitting, pa.string()))
        values = _cast(pc.if_else(fits, trimmed, pa.scalar(None, pa.string())), kind, zone)
        every = pc.or_(fits, pc.is_null(trimmed))
    return (text if pa.types.is_string(kind) else values), every


def _cast(text: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    column = pa.chunked_array([text])
    if pa.types.is_string(kind):
        found: pa.ChunkedArray | Unparsable | ConversionFailure = parse_iso(column)
    else:
        found = convert(column, kind, zone)
    if isinstance(found, Unparsable | ConversionFailure):
        raise pa.ArrowInvalid("not of the type wanted")
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _fits(value: str, kind: pa.DataType, zone: str) -> bool:
    try:
        _cast(pa.array([value], pa.string()), kind, zone)
    except pa.ArrowInvalid:
        return False
    return True
