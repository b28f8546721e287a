"""What a run may use and give out: memory for finding trends, the most trends that are given out one by one, and how
many matches an algorithm that has to look at all of them takes on.
"""

from __future__ import annotations

from dataclasses import dataclass

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
