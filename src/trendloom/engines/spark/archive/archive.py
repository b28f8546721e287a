"""A DataFrame into an archive: the caller's own events, and the rows of queries over them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

from trendloom.archive.archive import Archive, open_archive
from trendloom.archive.requests import ArchiveRequest
from trendloom.archive.settings import local_root
from trendloom.engines.spark.prerequisites import require_spark
from trendloom.options import Options, columns_named


def archive(
    df: Any,
    queries: str,
    folder: str | PathLike[str],
    *,
    commit: str | None = None,
    chunk: str = "1 hour",
    keep: str | None = None,
    dimensions: str | Sequence[str] | None = None,
    time: str = "time",
    type: str = "type",
    time_unit: str | None = None,
    time_low: str | None = None,
    time_high: str | None = None,
    time_error: str | None = None,
    order: str | Sequence[str] | None = None,
    time_zone: str | None = None,
    numeric: str = "exact",
    query: str | None = None,
) -> Archive:
    """Put events, and the rows of queries over them, into an archive; gives the archive as it is then.

    `df` is a batch DataFrame, or what `trendloom.run` reads. `queries` is their text; "" archives events alone. The
    folder is one that all tasks can write to. `commit` names what comes in: the same name again replaces it; without
    one it is new every time. `chunk`: the stretch of time that a file holds. `keep`: what is older than that, counted
    from the newest event, is dropped. `dimensions`: columns beside texts that may tell partitions apart.
    The other options are those of `detect`.
    """
    require_spark()
    from trendloom.engines.spark.archive.batch import archive_on_spark

    options = Options(
        engine="spark", numeric=numeric, time=time, type=type, time_unit=time_unit, time_low=time_low,
        time_high=time_high, time_error=time_error, order=columns_named(order), time_zone=time_zone, query=query,
    )  # fmt: skip
    root = local_root(folder)
    request = ArchiveRequest(
        root, queries, commit or f"batch-{uuid4().hex[:12]}", chunk=chunk, keep=keep,
        dimensions=columns_named(dimensions),
    )  # fmt: skip
    archive_on_spark(request, df, options)
    return open_archive(Path(root))
