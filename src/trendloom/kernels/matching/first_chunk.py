"""How large the first buffer of results is: later ones double.

Small, so that whoever wants a few waits for a few; and in proportion to few events, so that a handful of them is
answered without loading a compiler (`interpreted.HANDFUL`).
"""

from __future__ import annotations

ENTRIES = 1 << 16
"""Most entries (events of matches) of a first buffer."""
OF_AN_EVENT = 4


def first_chunk(events: int, most: int) -> int:
    """Entries of the first buffer for matches of so many events."""
    return min(most, ENTRIES, OF_AN_EVENT * (events + 8))
