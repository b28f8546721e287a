"""Tests that use Spark share one process under xdist: two sessions would fight for memory and double the start-up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

WRITES_ITS_PROCESS = """
import os
import pathlib
import pytest

@pytest.mark.parametrize("number", range(6))
def test_process(number):
    (pathlib.Path(__file__).parents[2] / f"{os.getpid()}.seen").touch()
"""


def test_spark_tests_run_in_one_process(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "tests" / "spark"
    folder.mkdir(parents=True)
    (folder / "test_process.py").write_text(WRITES_ITS_PROCESS)
    shutil.copy(root / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copy(root / "pyproject.toml", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert len(list(tmp_path.glob("*.seen"))) == 1
