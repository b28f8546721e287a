"""EXISTS in the physical plan: what is said of remainders, and which algorithms have to leave them to others."""

from __future__ import annotations

from trendloom.kernels.ground.spec import Detection
from trendloom.plan.display import Branch

HIDING = "EXISTS hides events, and equal remainders of different matches are one"


def describe_hiding(detection: Detection) -> tuple[Branch, ...]:
    """How remainders are made of matches, for EXPLAIN; nothing without EXISTS."""
    if not detection.hidden:
        return ()
    names = ", ".join(sorted({detection.places[position].variable for position in detection.hidden}))
    how = "matches are found with it, then it is left out; equal remainders, found by hash, are one"
    return (Branch("EXISTS", f"{names}: {how}"),)
