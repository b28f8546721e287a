"""What is refused before Spark starts: wrong files, columns and queries, and machines that lack what it needs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType
from tests.refused_pattern import PASSED_IN_MANY_WAYS, TOLD

import trendloom as tl
from trendloom.cli.live import Request
from trendloom.engines.spark import answers
from trendloom.engines.spark.session import java_version, require_java
from trendloom.engines.spark.streaming.service import Service
from trendloom.engines.spark.streaming.sinks import parse_sink
from trendloom.engines.spark.streaming.sources import COLUMNS, parse_source
from trendloom.errors import BindError, DataError, OptionError, PlanError, RunError, TrendloomError
from trendloom.options import Options

EVENTS = pa.table({"time": [1, 2], "type": ["A", "B"], "x": [1, 2], "none": pa.array([None, None], pa.string())})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Events as CSV and Parquet, and a Spark that must not start."""

    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(answers, "session", start)
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    (tmp_path / "events.csv").write_text("time,type,x\n1,A,1\n2,B,2\n")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("query", "options", "kind", "message"),
    [
        ("PATTERN A a WHERE a.y > 1", {}, BindError, "has no attribute 'y'"),
        ("PATTERN A a WHERE a.type > 1", {}, BindError, "cannot compare"),
        (PASSED_IN_MANY_WAYS, {}, PlanError, TOLD),
        ("PATTERN A", {"time": "when"}, DataError, "there is no column 'when'"),
        ("PATTERN A", {"time_unit": "fortnight"}, OptionError, "unknown time unit"),
    ],
)
def test_what_needs_no_spark_is_refused_before_it_starts(
    folder: Path, ending: str, query: str, options: dict[str, Any], kind: type[TrendloomError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        tl.run(query, folder / f"events.{ending}", engine="spark", **options)


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet", "missing"])
def test_a_missing_file_is_refused_before_spark_starts(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match=name):
        tl.run("PATTERN A", folder / name, engine="spark")


def test_columns_without_values_fit_everywhere(folder: Path) -> None:
    with pytest.raises(AssertionError, match="Spark was started"):
        tl.run("PATTERN A a WHERE a.none > 1", folder / "events.parquet", engine="spark")


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("PATTERN A a WHERE a.y > 1 WITHIN 10", BindError, "has no attribute 'y'"),
        ("PATTERN A", PlanError, "a live stream has no end"),
    ],
)
@pytest.mark.parametrize("source", ["csv", "parquet", "schema"])
def test_a_live_stream_is_checked_before_spark_starts(
    folder: Path, source: str, query: str, kind: type[TrendloomError], message: str
) -> None:
    schema = "time long, type string, x long" if source == "schema" else None
    place = parse_source(f"{'jsonl' if schema else source}:{folder}", schema=schema)
    service = Service(str(folder / "state"))
    request = Request(query, place, parse_sink("console"), Options(engine="spark"), service, "10 seconds", 8)
    with pytest.raises(kind, match=message):
        request.check()


def test_a_start_on_a_checkpoint_goes_by_the_columns_that_are_noted_there(folder: Path) -> None:
    (folder / "state").mkdir()
    note = StructType().add("time", "long").add("type", "string").add("k", "long")
    (folder / "state" / COLUMNS).write_text(note.json())
    (folder / "more.csv").write_text("time,type,x\n1,A,many\n")
    place, service = parse_source(f"csv:{folder}"), Service(str(folder / "state"))
    for query, wrong in (("PATTERN A a WHERE a.k > 1 WITHIN 10", False), ("PATTERN A a WHERE a.x > 1 WITHIN 10", True)):
        request = Request(query, place, parse_sink("console"), Options(engine="spark"), service, "10 seconds", 8)
        with pytest.raises(BindError, match="has no attribute 'x'") if wrong else nullcontext():
            request.check()


# -------------------------------------------------------------------------------------------- prerequisites


@pytest.mark.parametrize(
    "call", ["tl.run('PATTERN A', EVENTS, engine='spark')", "tl.spark.detect(EVENTS, 'PATTERN A')"]
)
@pytest.mark.parametrize(("package", "name"), [("pyspark", "PySpark"), ("pandas", "pandas")])
def test_without_its_packages_the_engine_says_what_to_install(call: str, package: str, name: str) -> None:
    script = (
        "import sys, pyarrow as pa\n"
        "EVENTS = pa.table({'time': [1], 'type': ['A']})\n"
        f"sys.modules['{package}'] = None\n"
        "import trendloom as tl, trendloom.spark\n"
        f"try: {call}\n"
        "except tl.errors.OptionError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        f"the spark engine needs {name}, which is not installed",
        "hint: pip install 'trendloom[spark]', or use engine=\"local\"",
    ], done.stderr


def a_java(home: Path, version: str, *, release: bool) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2018-10-16' >&2\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return java


@pytest.mark.parametrize("release", [True, False], ids=["file", "asked"])
@pytest.mark.parametrize(("version", "number"), [("1.8.0_412", 8), ("11.0.22", 11), ("17", 17), ("21.0.3", 21)])
def test_the_version_of_java(tmp_path: Path, version: str, number: int, release: bool) -> None:
    assert java_version(a_java(tmp_path / "jdk", version, release=release)) == number


def test_java_is_missing_or_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(tmp_path / "old", "11.0.22", release=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(RunError, match=r"needs Java 17 or later, and .*old/bin/java is Java 11") as raised:
        require_java()
    assert "install Java 17 or later" in str(raised.value)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(RunError, match=r"none was found in .*nowhere, which JAVA_HOME names"):
        require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="none was found"):
        require_java()
    a_java(tmp_path / "new", "21.0.3", release=True)
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    require_java()
