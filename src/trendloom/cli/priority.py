"""Who waits for whom: a diagnosis gives way to live streams on the same machine, which must not fall behind for it.

On a machine with cores to spare it takes no longer; on a busy one the streams go first. (To run in the time that nobody
else wants, SCHED_IDLE of Linux, was measured as well: streams gain nothing, and on a busy machine it never ends.)
"""

from __future__ import annotations

import os

LOWEST = 19
"""The lowest priority there is: such a process runs when no other one wants the core."""


def give_way() -> None:
    """Lower the priority of this process, for good; where the system has no priorities, nothing is done."""
    if hasattr(os, "nice"):
        os.nice(max(0, LOWEST - os.nice(0)))
