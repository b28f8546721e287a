"""A Spark session that fits Trendloom, every setting with its reason; and what Spark needs on this machine.

One session per process; asking again returns it. The first result of a fresh local session takes about ten seconds, so
the local engine is the one for the impatient.

PySpark, pandas and Java are looked for before anything starts: without them the first thing that fails is an import or
a process of Java's, with words that lead nowhere. Java is run for its version only where its folder does not show it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trendloom.errors import OptionError, RunError, option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARROW_ROWS = 100_000
"""Rows per Arrow batch: three times the rate of Spark's default of 10,000."""
WORKER_DAEMON = "trendloom.engines.spark.worker_daemon"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
PACKAGES = {"pyspark": "PySpark", "py4j": "Py4J", "pandas": "pandas"}
LEAST_JAVA = 17
INSTALL_JAVA = f"install Java {LEAST_JAVA} or later (Debian: apt-get install openjdk-{LEAST_JAVA}-jre-headless)"


def session(
    master: str | None = None, *, name: str = "trendloom", settings: dict[str, str] | None = None
) -> SparkSession:
    """The Spark session of this process, made with Trendloom's settings where there is none yet.

    `master` is a Spark master URL (default: all cores of this machine), or `sc://host:port` for Spark Connect. A
    session that is there already is returned as it is, with its own master and settings.
    """
    require_spark()
    from pyspark.sql import SparkSession

    # Workers must run the interpreter that has Trendloom installed.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master is not None and master.startswith("sc://"):
        return _started(SparkSession.builder.remote(master), master)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    require_java()
    builder = SparkSession.builder.master(master or "local[*]").appName(name)
    for key, value in {**_settings(master), **(settings or {})}.items():
        builder = builder.config(key, value)
    return _started(builder, master)


def is_started(master: str | None = None) -> bool:
    """Whether a session answers at once: one of this process, or a server's."""
    require_spark()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None or (master or "").startswith("sc://")


def set_arrow_rows(spark: SparkSession) -> None:
    """Larger Arrow batches than Spark's default, unless the user chose a size."""
    if spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "10000":
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))


def require_spark() -> None:
    """Refuse the engine where Python's side of it is not installed."""
    for package, name in PACKAGES.items():
        if find_spec(package) is None:
            raise OptionError(
                f"the spark engine needs {name}, which is not installed",
                hint=f"pip install 'trendloom[spark]', or use {option('engine', 'local')}",
            )


def require_java() -> None:
    """Refuse to start Spark here without a Java that it can run on."""
    java = _java()
    if java is None:
        raise RunError(
            f"the spark engine needs Java {LEAST_JAVA} or later, and none was found{_java_home()}",
            hint=f"{INSTALL_JAVA}, or use {option('engine', 'local')}",
        )
    version = java_version(java)
    if version is not None and version < LEAST_JAVA:
        raise RunError(
            f"the spark engine needs Java {LEAST_JAVA} or later, and {java} is Java {version}",
            hint=f"{INSTALL_JAVA} and let JAVA_HOME name its folder, or use {option('engine', 'local')}",
        )


def java_version(java: Path) -> int | None:
    """The feature version of a Java (8, 17, ...); None where it is unknown."""
    release = java.resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
    except OSError:
        text = _version_printed_by(java)
    found = re.search(r'(?:JAVA_VERSION="|version ")(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _started(builder: SparkSession.Builder, master: str | None) -> SparkSession:
    """The session; the error of a Spark that cannot start becomes one sentence."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise RunError(
            f"Spark could not be started{'' if master is None else f' on {master}'}: {reason}",
            hint=f"check {option('master')} and the settings of Spark, or use {option('engine', 'local')}",
        ) from problem


def _settings(master: str | None) -> dict[str, str]:
    chosen = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
        # Times without a zone are UTC everywhere in Trendloom.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master is None or master.startswith("local"):
        if not _has_log_settings():  # what a cluster loses and finds again is worth a line; here there is none
            chosen["spark.driver.defaultJavaOptions"] = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
        chosen |= {
            # One process holds driver and executors; the default of 1 GiB is small for columns.
            "spark.driver.memory": "4g",
            # The machine's host name may not resolve; nothing leaves it anyway.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Workers that have loaded everything when they start.
            "spark.python.daemon.module": WORKER_DAEMON,
            # Two waves of tasks keep all cores busy; Spark's default of 200 is made for clusters.
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    return chosen


def _has_log_settings() -> bool:
    """Whether the user has settings for Spark's log: then ours are not used."""
    home, folder = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    folders = [Path(folder)] if folder else [Path(home, "conf")] if home else []
    return any(True for one in folders for file in one.glob("log4j2.*") if file.suffix != ".template")


def _java() -> Path | None:
    """The Java that Spark would run: that of JAVA_HOME if it is set, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return Path(found) if found and os.access(found, os.X_OK) else None


def _java_home() -> str:
    home = os.environ.get("JAVA_HOME")
    return f" in {home}, which JAVA_HOME names" if home else ""


def _version_printed_by(java: Path) -> str:
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""
