"""The archive: a folder of events, of results of queries and of partitions, by type and time, whole after any crash.

What it holds is what its commits list (`commits`); `archive` reads it, `writing` adds to it, `upkeep` keeps it small.
"""

from __future__ import annotations

from trendloom.archive.archive import Archive, TypeSummary, create_archive, open_archive
from trendloom.archive.catalog import ArchivedQuery, save_monitor, save_query
from trendloom.archive.commits import ArchivedFile
from trendloom.archive.partitions import PartitionRows, dimensions_of_events
from trendloom.archive.upkeep import compact, drop_older, keep_to_retention
from trendloom.archive.writing import write_events, write_results

__all__ = [
    "Archive",
    "ArchivedFile",
    "ArchivedQuery",
    "PartitionRows",
    "TypeSummary",
    "compact",
    "create_archive",
    "dimensions_of_events",
    "drop_older",
    "keep_to_retention",
    "open_archive",
    "save_monitor",
    "save_query",
    "write_events",
    "write_results",
]
