"""What every test may count on: its tier, compiled kernels, and a session of Spark that is shared.

Tiers are marks: `unit`, `engines` (Spark, a browser, an installation), `deep` (long random runs). `make test` runs the
first two, with kernels compiled as users run them.

Tests that use Spark run in two processes: one has the live streams, the other all else. A test uses Spark if its id
says so: it lies in tests/spark, or has `spark` in its name or in a parameter. The scheduler of xdist sees only ids, so
a test that asks for the fixture `spark` without saying so is refused when it is collected. A test of Spark is a chain
of steps, one after the other, so there is one process more than there are cores.
(xdist's own way, the mark `xdist_group`, does nothing under pytest 9.2.)
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the project."""
    return ROOT


QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""For Spark that runs for seconds: the best code that Java could make would be ready when all is over, and classes of
Spark need no check."""
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
QUICK_SPARK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For jobs of few rows: they are done before Java code would be made for them."""
QUICK_CLUSTER = {**QUICK_SPARK, "spark.executor.extraJavaOptions": QUICK_JAVA}
"""The same on a cluster, whose executors have a Java each."""


def with_quick_start(paths: str) -> str:
    """A PYTHONPATH by which processes of Spark load PySpark as it is installed: see tests/spark/starting."""
    return os.pathsep.join(filter(None, [str(ROOT / "tests" / "spark" / "starting"), paths]))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of this process: small, and stopped at the end. Its tasks have the environment of now."""
    from trendloom.spark import session

    # tests have few rows: every shuffle partition more costs a task and no task gains anything
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    with kernels_on_spark(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", with_quick_start(os.environ.get("PYTHONPATH", "")))
        found = session("local[2]", settings=settings | QUICK_SPARK)
    yield found
    found.stop()


AS_USERS = ("tests/unit/kernels/jit/test_interpreted.py", "tests/unit/engines/test_first_answers.py",
            "tests/unit/runtime/test_trend_limits.py", "tests/unit/cli/test_starting.py")  # fmt: skip
"""Tests of when kernels are interpreted and when they are compiled: nothing is chosen for them."""
DEEP = "TRENDLOOM_EXAMPLES" in os.environ


@contextmanager
def kernels_on_spark() -> Iterator[None]:
    """Compile kernels in tasks of Spark and in commands, which are processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLOOM_COMPILE", "always")
        yield


@pytest.fixture(autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run kernels compiled, as users do; a test marked `interpreted` has Python run them."""
    from trendloom.kernels.jit.interpreted import compiled_first, interpreted_only

    if request.node.get_closest_marker("interpreted"):
        how: AbstractContextManager[None] = interpreted_only()
    else:
        how = nullcontext() if request.node.nodeid.startswith(AS_USERS) else compiled_first()
    with how:
        yield


LONG_SETUP = ("tests/cluster/", "tests/packaging/", "tests/spark/test_connect.py",
              "tests/unit/engines/test_first_answers.py", "tests/dashboard/", "tests/unit/dashboard/",
              "tests/unit/benchmarks/diagnosis/test_diagnosis.py")  # fmt: skip
"""Tests that share what takes long to set up: one process makes it, once."""
LIVE = ("tests/spark/test_stream_", "tests/spark/test_live_", "tests/spark/test_changing_workload.py")
"""Tests of live streams, which have a session of their own."""
SESSIONS = ("spark", "live")
SPARK_APART = ("tests/spark/test_connect.py",)
"""Tests whose Spark runs in processes of its own, so that any process can wait for it."""


def uses_spark(test_id: str) -> bool:
    return "spark" in test_id.lower()


def group_of(test_id: str) -> str:
    """Tests that one process runs: all that use its session of Spark, those that share a set-up, else each alone."""
    if uses_spark(test_id) and not test_id.startswith(SPARK_APART):
        return "live" if test_id.startswith(LIVE) else "spark"
    return next((part for part in LONG_SETUP if test_id.startswith(part)), test_id)


# Random cases make millions of small objects and hardly a cycle: looking for one was a tenth of their time.
gc.set_threshold(100_000, 50, 100)


ENGINES = ("tests/spark/", "tests/cluster/", "tests/dashboard/", "tests/packaging/", "tests/docs/test_demo")
"""Tests that start Spark, a browser or an installation, besides those that say `spark`."""


def tier_of(item: pytest.Item) -> str:
    """`deep` if a test is marked so, `engines` if it starts one, else `unit`."""
    if item.get_closest_marker("deep"):
        return "deep"
    return "engines" if uses_spark(item.nodeid) or item.nodeid.startswith(ENGINES) else "unit"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(tier_of(item))
        if "spark" in getattr(item, "fixturenames", ()) and group_of(item.nodeid) not in SESSIONS:
            raise pytest.UsageError(f"{item.nodeid} uses the fixture `spark`: say so in its name or a parameter")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests by their groups; the largest group goes first."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSparkProcess(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return OneSparkProcess(config, log)
