"""What every test may count on: tests that use Spark run in two processes, so that they share two sessions.

One has the live streams, the other all else. A test uses Spark if its id says so: it lies in tests/spark, or has
`spark` in its name or in a parameter. The scheduler of xdist sees only ids, so a test that asks for the fixture `spark`
without saying so is refused when it is collected. A test of Spark is a chain of steps, one after the other, so there is
one process more than there are cores.
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


COMPILED = ("tests/property/test_large_aggregates.py", "tests/property/test_local_engine.py",
            "tests/unit/kernels/test_compiled_code.py")  # fmt: skip
"""Tests of compiled kernels, whatever they take to compile."""
OF_ALL_KINDS = ("tests/property/", "tests/conformance/", "tests/spark/", "tests/cluster/",
                "tests/unit/kernels/ranking/", "tests/docs/test_examples.py::test_trend_counts",
                "tests/docs/test_ranked_examples.py", "tests/docs/test_imprecise_examples.py",
                "tests/unit/kernels/uncertain/", "tests/unit/benchmarks/")  # fmt: skip
"""Tests of so many queries that kernels are interpreted, and compiled in a deep run."""
AS_USERS = ("tests/unit/kernels/test_interpreted.py", "tests/unit/engines/test_first_answers.py",
            "tests/unit/runtime/test_trend_limits.py")  # fmt: skip
"""Tests of when kernels are compiled, or of millions of results. Others have one compiled later: see `unhurried`."""
PATIENCE = 3.0
"""Seconds: about as long as it takes to compile a kernel."""
SMALL = 1 << 20
"""Bytes: what a kernel works on for longer than that."""
AGGREGATES = ("[aggregates]", "[extreme values]")
"""Tests among the compiled ones that compile what large aggregates compile as well; so they do that in a deep run."""
DEEP = "TRENDLOOM_EXAMPLES" in os.environ


@contextmanager
def kernels_on_spark() -> Iterator[None]:
    """How kernels run in tasks of Spark, and in commands: in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLOOM_COMPILE", "always" if DEEP else "never")
        yield


@contextmanager
def unhurried() -> Iterator[None]:
    """Have a kernel compiled only after it was interpreted for about as long as that takes, or at once for many events.

    A process that runs thousands of small tests would soon have them all compiled, on the cores that tests need.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trendloom.kernels.jit.interpreted.PATIENCE", PATIENCE)
        patch.setattr("trendloom.kernels.jit.interpreted.LARGEST", SMALL)
        yield


@pytest.fixture(autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """How kernels run in a test."""
    from trendloom.kernels.jit.interpreted import compiled_first, interpreted_only

    name = request.node.nodeid
    of_all_kinds = name.startswith(OF_ALL_KINDS)
    if of_all_kinds and (uses_spark(name) or name.startswith("tests/cluster/")):
        how: AbstractContextManager[None] = kernels_on_spark()
    elif (of_all_kinds and DEEP) or (name.startswith(COMPILED) and not name.endswith(AGGREGATES)):
        how = compiled_first()
    elif of_all_kinds:
        how = interpreted_only()
    else:
        how = nullcontext() if name.startswith(AS_USERS) else unhurried()
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if uses_spark(item.nodeid):
            item.add_marker(pytest.mark.spark)
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
