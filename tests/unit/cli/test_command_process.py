"""The command as a process of its own: streams, exit status, and how much it loads."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import trendloom

COMMAND = [sys.executable, "-m", "trendloom"]
PACKAGES = str(Path(trendloom.__file__).parents[1])
# a process of a second compiles nothing, and should leave nobody behind who does
ENVIRONMENT = {**os.environ, "PYTHONPATH": PACKAGES, "COLUMNS": "100", "TRENDLOOM_COMPILE": "never"}


def call(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], input=text, capture_output=True, text=True, env=ENVIRONMENT)


def test_version() -> None:
    done = call("--version")
    assert (done.returncode, done.stdout) == (0, f"trendloom {trendloom.__version__}\n")


def test_help_is_light_and_names_every_command() -> None:
    script = """
import json, sys
from trendloom.cli.main import app
try:
    app(["run", "--help"])
except SystemExit:
    heavy = [name for name in ("pyarrow", "numpy", "numba", "pyspark", "lark") if name in sys.modules]
    print(json.dumps(heavy), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT)
    assert json.loads(done.stderr) == []
    options = "--events --engine --master --time --type --time-unit --time-low --time-high --numeric --format --output"
    assert [option for option in options.split() if option not in done.stdout] == []


def test_rows_on_standard_output_warnings_on_standard_error(folder: Path) -> None:
    done = call("run", "-", "-e", "events.csv", "--engine", "local", "-f", "jsonl", text="PATTERN SEQ(A a, Q?)")
    assert done.returncode == 0
    assert [json.loads(line)["events"][0]["id"] for line in done.stdout.splitlines()] == ["a1", "a5"]
    assert done.stderr.startswith("warning: the events have no type 'Q'")


def test_exit_statuses(folder: Path) -> None:
    assert call("check", "-", text="PATTERN A").returncode == 0
    bad_data = call("run", "-", "-e", "missing.csv", "--engine", "local", text="PATTERN A")
    bad_query = call("check", "-", text="PATTERN")
    assert (bad_data.returncode, bad_query.returncode) == (1, 2)
    assert (bad_data.stdout, bad_query.stdout) == ("", "")


def test_without_pyspark_the_spark_engine_says_what_to_install(folder: Path) -> None:
    script = "import sys; sys.modules['pyspark'] = None; from trendloom.cli.entry import start; start()"
    command = [sys.executable, "-c", script, "run", "-", "-e", "events.csv"]
    done = subprocess.run(command, input="PATTERN A", capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: the spark engine needs PySpark, which is not installed",
        "hint: pip install 'trendloom[spark]', or use --engine local",
    ]


def test_a_table_is_shown_where_the_terminal_knows_ascii_only(folder: Path) -> None:
    env = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "run", "-", "-e", "events.csv", "--engine", "local"]
    done = subprocess.run(command, input="PATTERN SEQ(A a, B b)", capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "a:a1 ? b:b2" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    lines = "".join(f"{time},A,{'x' * 100}\n" for time in range(5000))
    (folder / "many.csv").write_text("time,type,pad\n" + lines)
    command = [*COMMAND, "run", "-", "-e", "many.csv", "--engine", "local", "-f", "jsonl"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"PATTERN A a")
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_progress_is_shown_on_a_terminal_only_and_leaves_rows_alone(folder: Path) -> None:
    main, terminal = pty.openpty()
    command = [*COMMAND, "run", "-", "-e", "events.csv", "--engine", "local", "-f", "jsonl"]
    env = {**ENVIRONMENT, "TERM": "xterm"}
    done = subprocess.run(command, input=b"PATTERN A a", stdout=subprocess.PIPE, stderr=terminal, env=env)
    os.close(terminal)
    shown = os.read(main, 65536)
    os.close(main)
    assert b"reading and planning" in shown
    assert [json.loads(line)["events"][0]["id"] for line in done.stdout.splitlines()] == ["a1", "a5"]
