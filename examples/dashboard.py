"""The page over real server metrics: `make dashboard`, or python examples/dashboard.py [FOLDER OF THE ARCHIVE].

The metrics become an archive first: every kind of metric is a type of events, what it measures is their attribute, and
so is the machine (`ec2_cpu_utilization` has `percent` and `machine`). The queries of nab_monitors.tql are what a team
would watch. Then the page opens over the archive: mark where a curve is wrong, and ask why.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trendloom.archive.requests import ArchiveRequest
from trendloom.dashboard.access import Access
from trendloom.dashboard.app import serve
from trendloom.engines.local.archive import archive_locally
from trendloom.options import Options

HERE = Path(__file__).resolve().parent
METRICS = HERE / "data" / "nab_metrics.parquet"
QUERIES = HERE / "nab_monitors.tql"
MEASURES = {
    "cpu": "percent", "network": "bytes", "disk": "bytes", "request_count": "requests", "latency": "seconds",
    "temperature": "degrees", "taxi": "rides",
}  # fmt: skip
"""What is measured, by a part of the metric's name; of others it is a `value`."""


def events_of(metrics: pa.Table) -> pa.Table:
    """An event of every measurement."""
    by_series = metrics.column("series").combine_chunks().dictionary_encode()
    parts = []
    for code, series in enumerate(by_series.dictionary.to_pylist()):
        kind, machine = kind_and_machine(series.rpartition("/")[2])
        rows = metrics.filter(pc.equal(by_series.indices, code))
        measure = next((name for part, name in MEASURES.items() if part in kind), "value")
        columns = {"type": pa.repeat(kind, len(rows)), "machine": pa.repeat(machine, len(rows))}
        parts.append(pa.table({"time": rows.column("time"), **columns, measure: rows.column("value")}))
    return pa.concat_tables(parts, promote_options="default").sort_by("time")


def kind_and_machine(name: str) -> tuple[str, str | None]:
    """`ec2_cpu_utilization_24ae8d` is a kind of metric and a machine; some names have no machine."""
    if found := re.fullmatch(r"iio_us-east-1_(i-[0-9a-f]+)_NetworkIn", name):
        return "ec2_network_in", found[1]
    if found := re.fullmatch(r"(\w+)_([0-9a-f]{6})", name):
        return found[1], found[2]
    return name, None


def make_archive(folder: Path) -> None:
    """Archive the metrics and the results of the queries, in one process."""
    events = events_of(pq.read_table(METRICS))
    archive_locally(ArchiveRequest(folder, QUERIES.read_text(), "nab", chunk="7 days"), events, Options())


def main(folder: Path) -> None:
    print("archiving the metrics of NAB and the results of the queries ...", flush=True)
    make_archive(folder)
    serve([folder], Access(), ready=lambda address: print(f"the page is at {address} (Ctrl+C ends it)", flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "demo-output" / "archive")
