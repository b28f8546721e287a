"""The package as others get it: built as a wheel, installed in an empty environment far from the clone, and used."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "src")
PROGRAM = """
import pyarrow as pa, trendloom as tl
ticks = pa.table({"time": range(100), "type": ["Tick"] * 100})
print(tl.run("RETURN COUNT(*) AS n PATTERN Tick+", ticks)["n"][0])
try:
    tl.run("PATTERN Tick", ticks, engine="spark")
except tl.errors.TrendloomError as error:
    print(str(error).replace("\\n", " "))
"""
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def run(*command: object, cwd: Path) -> str:
    """What a command prints that sees nothing of the environment of these tests."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building writes into the folder of the sources."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / part, source / part)
    run(sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, source, cwd=built)
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it asks for, and nothing else."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    there = ("--python", home / "bin" / "python")
    locked = ("--constraint", ROOT / "requirements.lock")
    run(sys.executable, *PIP, *there, "install", "--no-compile", *locked, wheel, cwd=home)
    return home


def test_the_wheel_holds_the_grammar_the_types_and_the_licence(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "trendloom/frontend/tql/grammar.lark" in names
    assert "trendloom/py.typed" in names
    assert {"trendloom/dashboard/assets/page.js", "trendloom/dashboard/assets/style.css"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if not name.startswith(("trendloom/", "trendloom-"))]


def test_the_installed_package_answers_queries(installed: Path, tmp_path: Path):
    """One test, so that the environment is made once: the command, the library, and what it says of an extra."""
    for name in ("quickstart.tql", "events.csv"):
        shutil.copy(ROOT / "examples" / name, tmp_path / name)
    command = installed / "bin" / "trendloom"
    found = run(command, "run", "quickstart.tql", "-e", "events.csv", "--engine", "local", "-f", "jsonl", cwd=tmp_path)
    (row,) = map(json.loads, found.splitlines())
    assert (row["tag_id"], row["shelf"], row["exit"]) == (18, "A3", "south")
    counted, hint = run(installed / "bin" / "python", "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert counted == str(2**100 - 1)
    assert "trendloom[spark]" in hint
