"""Amounts: how people read and write counts and bytes, the memory that is free, and what a run may use and give out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from pathlib import Path

from trendloom.errors import OptionError

EXACT_DOUBLE = 2.0**53
"""Below it doubles hold every whole number."""
MEBI = 1 << 20
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

MOST_TRENDS = 1_000_000_000
MOST_COMPARED = 50_000
MOST_ENUMERATED = 100_000_000
MOST_SHARING_STEPS = 5_000_000


@dataclass(frozen=True)
class Limits:
    """`memory` in bytes; None: a share of what is free where the work is done. `trends` is the user's to raise.

    The others are matters of cost, whatever is given out in the end: `compared` matches of one window and partition
    are compared with each other for complete trends, which takes time with their square and minutes at this number;
    `enumerated` matches are merged for collapsed trends; `sharing_steps` may be taken by the search for what queries
    share (None: until there is nothing better).
    """

    memory: int | None = None
    trends: int = MOST_TRENDS
    compared: int = MOST_COMPARED
    enumerated: int = MOST_ENUMERATED
    sharing_steps: int | None = MOST_SHARING_STEPS


NO_LIMITS = Limits()


def show_count(number: float) -> str:
    """A count, rounded where it is an estimate or beyond what doubles hold."""
    if isinf(number):
        return "more than 1e308"
    return f"{round(number):,}" if number < EXACT_DOUBLE else f"{number:.3g}"


def show_bytes(number: float) -> str:
    """Mebibytes, or kibibytes or bytes where there are few."""
    if number < 100:
        return f"{number:.0f} bytes"
    return f"{number / MEBI:,.1f} MiB" if number >= MEBI / 10 else f"{number / 1024:,.1f} KiB"


def show_names(names: Sequence[str], most: int) -> str:
    """Some names; of more than `most`, and one, the first ones and how many more."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


# ------------------------------------------------------------------------------------------- memory


def free_memory() -> int:
    """Bytes that are free on this machine, or left of what its container may use."""
    free = _available()
    limit, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if limit is not None and used is not None:
        free = min(free, max(limit - used, 0))
    return free


def _available() -> int:
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        if found is not None:
            return int(found[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def bytes_of(text: str | int | None) -> int | None:
    """`512M`, `2 GiB`, `1.5g` or a number of bytes."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    if found is None:
        raise OptionError(f"'{text}' is not an amount of memory", hint="write 512M, 2G or a number of bytes")
    return int(float(found[1]) * UNITS[found[2].upper()])
