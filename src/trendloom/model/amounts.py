"""How people read amounts: counts, which may be beyond what is worth writing out, bytes, and lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

EXACT_DOUBLE = 2.0**53
"""Below it doubles hold every whole number."""
MEBI = 1 << 20


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
