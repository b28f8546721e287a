"""The events of an archive as DataFrames: files of one type with the same columns are read together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.archive import Archive, ArchivedFile
from trendloom.archive.schemas import read_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ParquetSource:
    """Files of one type with the same columns."""

    type: str
    files: tuple[ArchivedFile, ...]
    columns: pa.Schema

    def read(self, spark: SparkSession, root: Path) -> DataFrame:
        """Their rows; Spark is told the columns, so that it need not look for them."""
        from pyspark.sql.pandas.types import from_arrow_schema

        paths = [str((root / file.path).resolve()) for file in self.files]
        return spark.read.schema(from_arrow_schema(self.columns)).parquet(*paths)


def sources_of(archive: Archive, wanted: Callable[[ArchivedFile], bool]) -> Iterator[ParquetSource]:
    """The wanted files of events, by type and columns."""
    found: dict[tuple[str, str], list[ArchivedFile]] = {}
    for file in archive.files:
        if file.kind == "events" and wanted(file):
            found.setdefault((file.of, file.schema), []).append(file)
    for (type_, _), files in sorted(found.items()):
        yield ParquetSource(type_, tuple(files), read_schema(archive.root, files[0].schema))


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows; halved again and again, because a chain of hundreds is too deep for Spark's optimizer."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union_of(frames[:middle]).unionByName(union_of(frames[middle:]))
