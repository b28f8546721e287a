"""Resident memory of this process, now and at most."""

from __future__ import annotations

import resource
from pathlib import Path


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
