"""Who waits for whom: a diagnosis gives way to live streams on the same machine, which must not fall behind for it.

On a machine with cores to spare it takes no longer; on a busy one the streams go first. Where the system can run a
process in the time that nobody else wants (SCHED_IDLE of Linux), that is what is asked for: a core that does nothing
else counts as free, so a stream that wakes up takes it at once. The lowest priority alone does not do that.
"""

from __future__ import annotations

import os
from contextlib import suppress

LOWEST = 19
"""The lowest priority there is."""


def give_way() -> None:
    """Let others go first, for good; where the system has no priorities, nothing is done."""
    if hasattr(os, "nice"):
        os.nice(max(0, LOWEST - os.nice(0)))
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):  # a container may forbid it
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
