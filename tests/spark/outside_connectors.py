"""A source and a sink as another package would write them: registered, then used by URI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from trendloom.errors import OptionError
from trendloom.streaming.connectors import ReadSettings, SourceAddress

COLUMNS = "time timestamp, type string, key int"


@dataclass(frozen=True)
class Diary:
    """Lines `2024-09-02T07:02:00Z Recycle 3` in files of a folder."""

    scheme: ClassVar[str] = "diary"
    form: ClassVar[str] = "diary:FOLDER"
    help: ClassVar[str] = "a line per event"

    address: SourceAddress

    def check(self) -> None:
        if not Path(self.address.place).is_dir():
            raise OptionError(f"there is no diary {self.address.place}", hint=self.form)

    def known_columns(self, times: tuple[str, ...], checkpoint: str | None = None) -> pa.Schema | None:
        kinds = (pa.timestamp("us", "UTC"), pa.string(), pa.int32())
        return pa.schema(zip(("time", "type", "key"), kinds, strict=True))

    def open(self, spark: Any, settings: ReadSettings) -> Any:
        lines = spark.readStream.text(str(Path(self.address.place).resolve()))
        return lines.selectExpr(
            "timestamp(split(value, ' ')[0]) AS time",
            "split(value, ' ')[1] AS type",
            "int(split(value, ' ')[2]) AS key",
        )


@dataclass(frozen=True)
class Tally:
    """A file with a line `BATCH ROWS` per batch."""

    scheme: ClassVar[str] = "tally"
    form: ClassVar[str] = "tally:FILE"
    help: ClassVar[str] = ""
    exactly_once: ClassVar[str] = "is written again"
    on_console: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    place: str

    def check(self) -> None:
        if Path(self.place).is_dir():
            raise OptionError(f"{self.place} is a folder", hint=self.form)

    def writer(self, show: Callable[[pa.Table, int], None]) -> Callable[[Any, int], None]:
        def count(rows: Any, batch: int) -> None:
            with Path(self.place).open("a") as file:
                file.write(f"{batch} {rows.count()}\n")

        return count
