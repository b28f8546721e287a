"""The archive of `make dashboard`, and the reason that docs/dashboard.md shows of it."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.blocks import ROOT

import trendloom as tl
from trendloom.archive import open_archive


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """examples/dashboard.py, which is no package."""
    found = util.spec_from_file_location("dashboard_example", ROOT / "examples" / "dashboard.py")
    assert found is not None
    assert found.loader is not None
    module = util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


def test_metrics_become_types_and_machines(example: ModuleType) -> None:
    assert example.kind_and_machine("ec2_cpu_utilization_24ae8d") == ("ec2_cpu_utilization", "24ae8d")
    assert example.kind_and_machine("iio_us-east-1_i-a2eb1cd9_NetworkIn") == ("ec2_network_in", "i-a2eb1cd9")
    assert example.kind_and_machine("nyc_taxi") == ("nyc_taxi", None)


def test_the_load_of_a_machine_fell_because_nothing_came_in(example: ModuleType, tmp_path: Path) -> None:
    example.make_archive(tmp_path / "metrics")
    archive = open_archive(tmp_path / "metrics")
    assert sum(one.rows for one in archive.types().values()) == 137_301
    assert list(archive.queries()) == ["cpu", "database_cpu", "machine_temperature", "request_latency"]
    found = tl.diagnose(
        tmp_path / "metrics",
        query="cpu",
        partition={"machine": "825cc2"},
        abnormal=[("2014-04-16 03:00", "2014-04-16 12:00")],
        reference=[("2014-04-10 06:00", "2014-04-16 00:00")],
        windows="1 h",
    )
    assert [one.feature.name for one in found.kept] == ["ec2_network_in.bytes mean over 1 h"]
