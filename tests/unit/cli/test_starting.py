"""What happens before a command: who needs no pandas does not load it, and whoever imports it later has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trendloom.cli.entry import runs_here


@pytest.mark.parametrize(
    ("words", "here"),
    [
        ("run q.tql --events e.csv", False),
        ("run q.tql --engine local", True),
        ("run q.tql --engine=reference", True),
        ("run q.tql --query local", False),
        ("run q.tql --engine local --help", False),
        ("run q.tql --engine", False),
        ("explain q.tql --engine spark", False),
        ("diagnose --archive plant", True),
        ("diagnose --archive plant --engine spark", False),
        ("check q.tql", True),
        ("stream q.tql", False),
        ("dashboard plant", False),
        ("", False),
    ],
)
def test_which_commands_run_in_this_process(words: str, here: bool) -> None:
    assert runs_here(words.split()) is here


def test_a_local_command_does_not_load_pandas(root: Path) -> None:
    """Nor Spark; and pandas works afterwards, also through Arrow."""
    script = """
import sys
from trendloom.cli.entry import start
sys.argv = ["trendloom", "run", "examples/quickstart.tql", "--events", "examples/events.csv", "--engine", "local"]
try:
    start()
except SystemExit as ended:
    assert not ended.code
assert "pandas" not in sys.modules and "pyspark" not in sys.modules
import pandas as pd
import pyarrow as pa
assert pa.table({"a": [1, 2]}).to_pandas()["a"].tolist() == [1, 2]
assert pa.Table.from_pandas(pd.DataFrame({"a": [1.5]})).to_pylist() == [{"a": 1.5}]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert "south" in done.stdout
