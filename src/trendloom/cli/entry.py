"""The entry point: what a process does before its command, so that answers come soon and others are not disturbed.

This comes before the command line itself is loaded, which takes a tenth of a second that a live stream may need.

Arrow loads pandas, where it is installed, before it makes its first array: a third of a second for a library that no
command needs unless Spark runs. And a diagnosis lets live streams on the same machine go first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder

LOWEST = 19
"""The lowest priority: such a process runs when no other one needs the core."""
GIVING_WAY = ("diagnose",)
"""Commands that let live streams on the same machine go first."""
ALONE = ("check", "diagnose", "monitor")
"""Commands that run in this process unless an option names Spark; others use Spark unless an option names an engine."""
HERE = ("local", "reference")
"""Engines that run in this process."""
NAMED = "--engine="


def start() -> None:
    """The command `trendloom`."""
    prepare(sys.argv[1:])
    from trendloom.cli.main import main

    main()


def prepare(words: Sequence[str]) -> None:
    """Get ready for a command with these words."""
    if words and words[0] in GIVING_WAY:
        # one core is left to others; read by libraries when they are loaded
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        give_way()
    if runs_here(words):
        do_without_pandas()


def give_way() -> None:
    """Lower the priority of this process, for good; where the system has no priorities, nothing is done.

    On a machine with free cores a diagnosis takes no longer; on a busy one live streams go first. (SCHED_IDLE of Linux
    was measured as well: streams gain nothing, and on a busy machine a diagnosis never ends.)
    """
    if hasattr(os, "nice"):
        os.nice(max(0, LOWEST - os.nice(0)))


def runs_here(words: Sequence[str]) -> bool:
    """Whether a command does its work in this process, without Spark."""
    if not words or not {"-h", "--help"}.isdisjoint(words):
        return False
    engine = next((word.removeprefix(NAMED) for word in words if word.startswith(NAMED)), None)
    if "--engine" in words[:-1]:
        engine = words[words.index("--engine") + 1]
    return engine in HERE or (engine is None and words[0] in ALONE)


def do_without_pandas() -> None:
    """Make Arrow look for pandas once and not find it; later imports of pandas work as ever."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    nowhere = _NoPandas()
    sys.meta_path.insert(0, nowhere)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(nowhere)


class _NoPandas(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)
