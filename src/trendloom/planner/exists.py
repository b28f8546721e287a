"""EXISTS in the physical plan: what is said of remainders, and which algorithms have to leave them to others."""

from __future__ import annotations

from trendloom.kernels.matching.spec import Detection
from trendloom.logical.display import Branch

HIDING = "EXISTS hides events, and equal remainders of different matches are one"


COMPARED = "found like all others, then left out of matches; equal remainders, found by hash, are one"
COUNTED = "one event at its place is enough: the latest one takes the place of those before it"


def describe_hiding(detection: Detection, how: str) -> tuple[Branch, ...]:
    """What becomes of hidden events, for EXPLAIN; nothing without EXISTS."""
    if not detection.hidden:
        return ()
    names = ", ".join(sorted({detection.places[position].variable for position in detection.hidden}))
    return (Branch("EXISTS", f"{names}: {how}"),)
