"""What Spark needs on this machine: PySpark, pandas and Java, looked for before anything starts.

Without them the first thing that fails is an import or a process of Java's, with words that lead nowhere. Looking costs
a few file names; Java is asked for its version only where its folder does not tell.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from trendloom.errors import OptionError, RunError, option

PACKAGES = {"pyspark": "PySpark", "py4j": "Py4J", "pandas": "pandas"}
LEAST_JAVA = 17
INSTALL_JAVA = f"install Java {LEAST_JAVA} or later (Debian: apt-get install openjdk-{LEAST_JAVA}-jre-headless)"


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
            f"the spark engine needs Java {LEAST_JAVA} or later, and none was found{_home_told()}",
            hint=f"{INSTALL_JAVA}, or use {option('engine', 'local')}",
        )
    version = java_version(java)
    if version is not None and version < LEAST_JAVA:
        raise RunError(
            f"the spark engine needs Java {LEAST_JAVA} or later, and {java} is Java {version}",
            hint=f"{INSTALL_JAVA} and let JAVA_HOME name its folder, or use {option('engine', 'local')}",
        )


def java_version(java: Path) -> int | None:
    """The feature version of a Java (8, 17, ...); None where nothing tells."""
    release = java.resolve().parent.parent / "release"
    try:
        told = release.read_text(errors="replace")
    except OSError:
        told = _told_by(java)
    found = re.search(r'(?:JAVA_VERSION="|version ")(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None


def _java() -> Path | None:
    """The Java that Spark would run: that of JAVA_HOME if it is set, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return Path(found) if found and os.access(found, os.X_OK) else None


def _home_told() -> str:
    home = os.environ.get("JAVA_HOME")
    return f" in {home}, which JAVA_HOME names" if home else ""


def _told_by(java: Path) -> str:
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""
