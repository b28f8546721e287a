"""The table of partitions: one row for each value of a query's partition attributes, with what never changes in it.

Dimension attributes are columns of the query's events that have one value within every partition (the program of a
job, the line of a product). A commit has its own events only, so each brings what it saw, and what was seen of one
partition is put together when it is read; a column that has two values in any partition, in any commit, is not a
dimension. The first time, the last, and the number of points are those of the rows that are in the archive.
Cost: a hash of the events by partition when they come in; a hash of the rows by partition when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.archive.data_files import joint_columns, plain_values, with_all_columns

FIRST, LAST, POINTS = "first", "last", "points"
MEASURES = (FIRST, LAST, POINTS)
LEAST, MOST = "min", "max"
NUMBER = "\0number"


@dataclass(frozen=True, eq=False)
class PartitionRows:
    """Partition attributes, dimensions and measures; `varying`: columns that are not dimensions after all."""

    table: pa.Table
    varying: tuple[str, ...] = ()

    def dimensions(self, keys: Sequence[str]) -> list[str]:
        return [name for name in self.table.column_names if name not in {*keys, *MEASURES}]


def dimensions_of_events(events: pa.Table, keys: Sequence[str], candidates: Sequence[str]) -> PartitionRows:
    """The dimensions that these events of a query show; rows have no measures yet."""
    if not len(events):
        return PartitionRows(events.select(list(keys)))
    plain = plain_values(events.select(list(dict.fromkeys([*keys, *candidates]))), keep=keys)
    names = [name for name in candidates if name in plain.column_names]
    return _steady_columns(_grouped(plain, keys, _bounds_of(names)), keys, names)


def _bounds_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """The least and the greatest value of columns, as what is computed of groups."""
    return [(name, how) for name in names for how in (LEAST, MOST)]


def _steady_columns(grouped: pa.Table, keys: Sequence[str], candidates: Sequence[str]) -> PartitionRows:
    """Of the least and greatest values by partition: the columns in which these are the same."""
    steady, varying = {}, []
    for name in candidates:
        least, most = (grouped.column(_of_group(name, how)) for how in (LEAST, MOST))
        if not pc.all(pc.equal(least, most), min_count=0).as_py():
            varying.append(name)
        elif least.null_count < len(least):
            steady[name] = least
    table = grouped.select(list(keys))
    for name, column in steady.items():
        table = table.append_column(name, column)
    return PartitionRows(table, tuple(varying))


def candidates_for_dimensions(schema: pa.Schema, left_out: Iterable[str], named: Sequence[str]) -> list[str]:
    """Columns that may be dimensions: texts, and those that were named."""
    without = set(left_out)
    return [one.name for one in schema if one.name not in without and (one.name in named or _is_text(one.type))]


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain))


def merged_dimensions(parts: Sequence[PartitionRows], keys: Sequence[str]) -> PartitionRows:
    """One row for each partition of all parts: what never changes in it."""
    found, _ = _merged(parts, keys, [])
    return found


def table_of_partitions(rows: pa.Table, parts: Sequence[PartitionRows], keys: Sequence[str], at: str) -> pa.Table:
    """Partitions that have rows, in order: attributes, dimensions, the first and last time, the number of points."""
    measured = _grouped(rows.select([*keys, at]), keys, [(at, LEAST), (at, MOST), (at, "count")])
    measured = measured.rename_columns([*keys, *MEASURES])
    computed = [(FIRST, LEAST), (LAST, MOST), (POINTS, "sum")]
    found, grouped = _merged([PartitionRows(measured), *parts], keys, computed)
    table = found.table
    for name, how in computed:
        table = table.append_column(name, grouped.column(_of_group(name, how)))
    table = table.filter(pc.greater(pc.fill_null(table.column(POINTS), 0), 0))
    return table.sort_by([(name, "ascending") for name in (*keys, FIRST)])


def news_of_partitions(seen: PartitionRows, now: PartitionRows, keys: Sequence[str]) -> PartitionRows:
    """Of what is known now: partitions of which it is more than was seen before, and columns that vary after all."""
    whole = merged_dimensions([seen, now], keys)
    names = whole.table.column_names
    before = with_all_columns(plain_values(seen.table, keep=keys), whole.table.schema)
    both = pa.concat_tables([before, whole.table])
    number = pa.concat_arrays(
        [pa.repeat(pa.scalar(at, pa.int8()), len(one)) for at, one in ((0, before), (1, whole.table))]
    )
    found = _grouped(both.append_column(NUMBER, number), names, [(NUMBER, LEAST)])
    fresh = found.filter(pc.equal(found.column(_of_group(NUMBER, LEAST)), 1)).select(names)
    varying = tuple(sorted({*whole.varying} - {*seen.varying}))
    if varying and not len(fresh):
        fresh = whole.table.slice(0, 1)  # a file needs a row to be listed
    return PartitionRows(fresh, varying)


def _merged(
    parts: Sequence[PartitionRows], keys: Sequence[str], computed: list[tuple[str, str]]
) -> tuple[PartitionRows, pa.Table]:
    """The dimensions of all parts by partition, and values computed beside them of the first part."""
    varying = {name for part in parts for name in part.varying}
    measured = {name for name, _ in computed}
    plain = [plain_values(part.table, keep=keys) for part in parts]
    joint = joint_columns(table.schema for table in plain)
    dimensions = [one for one in joint if one.name not in {*keys, *MEASURES, *varying}]
    chosen = [one for one in joint if one.name in {*keys, *measured}]
    schema = pa.schema([*chosen, *dimensions])
    table = pa.concat_tables([schema.empty_table(), *(with_all_columns(one, schema) for one in plain)])
    names = [one.name for one in dimensions]
    grouped = _grouped(table, keys, [*_bounds_of(names), *computed])
    steady = _steady_columns(grouped, keys, names)
    return PartitionRows(steady.table, tuple(sorted({*varying, *steady.varying}))), grouped


def _grouped(table: pa.Table, keys: Sequence[str], computed: list[tuple[str, str]]) -> pa.Table:
    """Groups in the order of their first rows; without keys, all rows are one group."""
    found = table.group_by(list(keys), use_threads=False).aggregate(computed)
    return found.rename_columns([*keys, *(_of_group(name, how) for name, how in computed)])


def _of_group(name: str, how: str) -> str:
    """The column for a value of each group: a name that no column of events has."""
    return f"\0{how}\0{name}"
