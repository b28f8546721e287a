"""Tests that use Spark share a process under xdist, and those of live streams another: sessions take long to start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

WRITES_ITS_PROCESS = """
import os
import pathlib
import pytest

@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("number", range(6))
def test_process(number, engine):
    (pathlib.Path(__file__).parents[1] / f"{os.getpid()}.{engine}").touch()
"""
ASKS_WITHOUT_SAYING = """
import pytest

@pytest.fixture
def spark():
    return None

def test_something(spark):
    pass
"""


WRITES_ITS_PROCESS_IN_A_STREAM = """
import os
import pathlib
import pytest

@pytest.mark.parametrize("number", range(6))
def test_process(number):
    (pathlib.Path(__file__).parents[2] / f"{os.getpid()}.live").touch()
"""


def run(folder: Path, root: Path, test: str, *options: str, of_streams: str = "") -> str:
    """Run one test file, or two, under the project's settings."""
    (folder / "tests" / "spark").mkdir(parents=True)
    (folder / "tests" / "test_one.py").write_text(test)
    (folder / "tests" / "spark" / "test_stream_one.py").write_text(of_streams)
    shutil.copy(root / "tests" / "conftest.py", folder / "tests")
    shutil.copy(root / "pyproject.toml", folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_tests_of_spark_run_in_one_process(tmp_path: Path, root: Path) -> None:
    said = run(tmp_path, root, WRITES_ITS_PROCESS, "-n", "2")
    assert "12 passed" in said, said
    assert len(list(tmp_path.glob("*.spark"))) == 1


def test_tests_of_live_streams_run_in_another_process(tmp_path: Path, root: Path) -> None:
    said = run(tmp_path, root, WRITES_ITS_PROCESS, "-n", "3", of_streams=WRITES_ITS_PROCESS_IN_A_STREAM)
    assert "18 passed" in said, said
    (batch,), (live,) = tmp_path.glob("*.spark"), tmp_path.glob("*.live")
    assert batch.stem != live.stem


def test_a_test_that_uses_a_session_must_say_so(tmp_path: Path, root: Path) -> None:
    assert "say so in its name or a parameter" in run(tmp_path, root, ASKS_WITHOUT_SAYING)
