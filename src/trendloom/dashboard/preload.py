"""Loaded by the process that jobs are forked from: what the first query would load and build is there already.

Nothing runs here that starts a thread, because threads do not survive a fork.
"""

from __future__ import annotations

import pyarrow as pa

from trendloom.dashboard import requests
from trendloom.engines.introspection import explain_queries
from trendloom.options import Options
from trendloom.runtime.reading import schema_of_columns

_COLUMNS = schema_of_columns(pa.schema({"time": pa.int64(), "type": pa.string(), "v": pa.float64()}), Options())

READY = bool(requests.RunResult) and bool(
    explain_queries("PATTERN SEQ(A a, B+ b[]) WHERE a.v < 3 WITHIN 10", _COLUMNS, Options()).text
)
"""True once everything is loaded."""
