"""The live demo: what it feeds, and what its queries find in it (`make demo-stream` shows it on Spark)."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.docs.blocks import ROOT

import trendloom as tl
from trendloom.frontend.tql.parser import parse


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_stream", ROOT / "examples" / "demo_stream.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_query_finds_something(demo: ModuleType) -> None:
    text = demo.WORKLOAD.read_text()
    events = demo.readings()
    for query in parse(text):
        assert len(tl.run(text, events, query=query.name)) > 10


class Impatient(threading.Event):
    """Does not wait between files, and stops after some."""

    left = 12

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        return self.left == 0


def test_readings_are_fed_in_files_and_some_come_late(demo: ModuleType, tmp_path: Path) -> None:
    demo.feed(tmp_path, Impatient())
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) == 12
    tables = [pq.read_table(file) for file in files]
    first = demo.readings().slice(0, 1)["time"][0].as_py()
    ends = [max(table["time"].to_pylist()) for table in tables]
    late = [
        time for end, table in zip(ends, tables[1:], strict=False) for time in table["time"].to_pylist() if time < end
    ]
    assert min(pa.concat_tables(tables)["time"].to_pylist()) == first
    assert len(late) > 100
