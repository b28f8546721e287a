"""What a query means by its matches: which events a match may pass over, and in which form matches are given.

Both are words of the language that every room below and above it speaks, so they stand under all of them.
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
