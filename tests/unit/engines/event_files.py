"""Four events with ids that only look like numbers, saved in every kind of file, and tables that pack values oddly."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

QUERY = "PATTERN SEQ(A a, B b) WHERE [id] RETURN a.time AS first, b.time AS last"
TABLE = pa.table({"time": [1, 2, 3, 4], "type": ["A", "A", "B", "B"], "id": ["007", "7", "007", "7"]})
ROWS = [{"id": "007", "first": 1, "last": 3}, {"id": "7", "first": 2, "last": 4}]


def save(table: pa.Table, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        rows = [",".join(map(str, row.values())) for row in table.to_pylist()]
        path.write_text("\n".join([",".join(table.column_names), *rows]) + "\n")
    return path


def packed() -> dict[str, object]:
    plain = pa.table({"time": [1, 2], "type": ["A", "B"], "key": ["x", "x"], "more": [[1], [2, 3]]})
    views = pa.schema(
        [
            ("time", pa.int64()),
            ("type", pa.string_view()),
            ("key", pa.string_view()),
            ("more", pa.list_view(pa.int64())),
        ]
    )
    columns = [pa.array(plain[field.name].to_pylist(), field.type) for field in views]
    runs = pc.run_end_encode(plain["key"].combine_chunks())
    return {
        "polars": pa.table(polars.from_arrow(plain)),
        "views": pa.table(columns, schema=views),
        "runs": plain.set_column(2, "key", runs),
        "large": plain.cast(plain.schema.set(1, pa.field("type", pa.large_string()))),
        "dictionary": plain.set_column(1, "type", plain["type"].dictionary_encode()),
        "struct": plain.set_column(3, "more", pa.array([{"s": "a"}, None], pa.struct([("s", pa.string_view())]))),
        "bytes": plain.set_column(3, "more", pa.array([b"a", None], pa.binary_view())),
    }
