"""Resident memory of this process, now and at most."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_apart(module: str, *arguments: str) -> Any:
    """Run a module of the benchmarks in a process of its own, and return what it prints as JSON.

    Arrow uses the system's allocator there, which gives memory back at once.
    """
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def peak_while(work: Callable[[], object]) -> int:
    """Bytes that a piece of work needs at most, over those before it."""
    before = resident()
    reset_peak()
    work()
    return peak_memory() - before


def resident() -> int:
    """Bytes of this process in memory."""
    return _status("VmRSS") or peak_memory()


def peak_memory() -> int:
    """The most there ever were, since `reset_peak` where the system lets us."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> None:
    """Forget the high-water mark; elsewhere than on Linux it stays what it was."""
    mark = Path("/proc/self/clear_refs")
    if mark.exists():
        mark.write_text("5")


def _status(name: str) -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[name].split()[0]) * 1024
