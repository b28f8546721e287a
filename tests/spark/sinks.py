"""A sink that can be given a batch again: a folder per batch, written under another name and renamed when it is whole.

A batch that is done again must have the same rows as the first time, or "exactly once" would be luck: it is compared.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.spark.streams import counted


def write_once(df: Any, batch: int, folder: Path) -> None:
    """Put the rows of a batch into the folder of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    place, unfinished = folder / f"{batch:06d}", folder / f".{uuid.uuid4().hex}"
    df.write.parquet(str(unfinished))
    if not place.exists():
        unfinished.rename(place)
        return
    before, again = (counted(pq.read_table(one, partitioning=None)) for one in (place, unfinished))
    shutil.rmtree(unfinished)
    if before != again:
        raise AssertionError(f"batch {batch} was done again and gave other rows: {before - again}, {again - before}")
