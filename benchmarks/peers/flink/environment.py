"""An environment of its own for PyFlink: its pinned packages (an old PyArrow among them) do not go with Spark's.

It is made on first use, by package name, in `.venv-flink` under the project's root, and ignores itself for git. The
wheel brings everything the baseline needs: the planner, pattern matching, the file connector and CSV. Java comes from
the machine, as it does for Spark.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REQUIREMENT = "apache-flink==2.3.0"
FOLDER = Path(__file__).parents[3] / ".venv-flink"


def flink_python() -> Path:
    """The interpreter that has PyFlink; installs it where it is missing."""
    python, ready = FOLDER / "bin" / "python", FOLDER / "ready.txt"
    if ready.exists() and ready.read_text() == REQUIREMENT:
        return python
    print(f"making {FOLDER.name} with {REQUIREMENT}: once, a few minutes, about 1 GB", file=sys.stderr)
    _run([sys.executable, "-m", "venv", str(FOLDER)])
    (FOLDER / ".gitignore").write_text("*\n")
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT])
    ready.write_text(REQUIREMENT)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"could not prepare PyFlink: {' '.join(command)}\n{done.stderr[-2000:]}\n"
            f"hint: {REQUIREMENT} has no wheel for every Python (3.11 is good); remove {FOLDER.name} to start again"
        )
