"""What every test may count on: tests that use Spark run in one process, so that they share one session."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the project."""
    return ROOT


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test uses Spark if it asks for the fixture `spark`, lies in tests/spark, or says so with its mark."""
    for item in items:
        asks = "spark" in getattr(item, "fixturenames", ())
        lies = ROOT / "tests" / "spark" in item.path.parents
        if asks or lies or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
