"""What a run may use and give out: memory for finding trends, and the most trends that are given out one by one."""

from __future__ import annotations

from dataclasses import dataclass

MOST_TRENDS = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """`memory` in bytes; None: a share of what is free where the work is done."""

    memory: int | None = None
    trends: int = MOST_TRENDS


NO_LIMITS = Limits()
