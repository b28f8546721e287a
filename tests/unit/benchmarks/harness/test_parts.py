"""A part of the benchmarks imports only what it needs, and a report fails where nothing was compared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.harness.parts import PARTS
from benchmarks.harness.report import Report, Result

ROOT = Path(__file__).parents[4]
FOREIGN = ("sklearn", "networkx", "pyflink", "pandas", "pyspark")
NEEDS = {name: set(part.needs) for name, part in PARTS.items() if part.needs}
IMPORT = """
import sys
from importlib.abc import MetaPathFinder

hidden = set(sys.argv[2].split(","))


class Hiding(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)


sys.meta_path.insert(0, Hiding())
from benchmarks.harness.parts import PARTS

for name in sys.argv[1].split(","):
    PARTS[name].load()
"""


def import_hiding(parts: list[str], hidden: set[str]) -> str:
    """Import parts in a process that has not these packages; the error, or nothing."""
    command = [sys.executable, "-c", IMPORT, ",".join(parts), ",".join(sorted(hidden))]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stderr


def test_parts_load_without_packages_that_they_do_not_need() -> None:
    frugal = [name for name in PARTS if name not in NEEDS]
    assert "is hidden" not in (error := import_hiding(frugal, set(FOREIGN))), error
    assert not error


@pytest.mark.parametrize("part", NEEDS)
def test_what_a_part_needs_is_all_it_needs(part: str) -> None:
    assert not import_hiding([part], set(FOREIGN) - NEEDS[part])
    assert "is hidden" in import_hiding([part], NEEDS[part])


def test_a_check_that_compared_nothing_fails() -> None:
    report = Report()
    report.add(Result("nothing", 10, 1.0, 0, checked=True))
    report.add(Result("wrong", 10, 1.0, 5, checked=False))
    report.add(Result("a pipeline", 10, 1.0, 0, checked=None))
    report.add(Result("slow", 10, 1.0, 5, checked=True).with_goal("1 M events/s", met=False))
    assert [one.partition(":")[0] for one in report.failures] == ["nothing", "wrong", "slow"]
    assert Report().failures


def test_small_sizes_say_nothing_about_goals() -> None:
    report = Report(with_goals=False)
    report.add(Result("slow", 10, 1.0, 5, checked=True).with_goal("1 M events/s", met=False))
    assert report.results[0].met is None
    assert not report.failures
