"""Which events a match may pass over, and in which form matches are returned.

The front ends, the planner and the kernels all use both, so they stand below all of them.
"""

from __future__ import annotations

from enum import Enum


class Semantics(Enum):
    """Which events a match may pass over: any, those that do not fit, none."""

    ANY = "skip-till-any-match"
    NEXT = "skip-till-next-match"
    CONTIGUOUS = "contiguous"


class Trends(Enum):
    """The three forms of RETURN that give events."""

    ALL = "TRENDS"
    COMPLETE = "COMPLETE TRENDS"
    COLLAPSED = "COLLAPSED TRENDS"
