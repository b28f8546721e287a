"""When results are certain, and how long events are needed: by this an engine feeds a kernel with a live stream.

A watermark is a promise: from now on no event earlier than it arrives. Four rules cover every query:

- LAST: a match is certain when the watermark has passed its last event;
- LATEST: its last event may have happened later than it seems (times are imprecise), and what lies before it matters:
  when the watermark has passed the latest time of its last event;
- FIRST: something later may still change it (a trailing NOT, a longer match): when nothing more can lie within WITHIN
  of its first event;
- WINDOW: when the window has ended.

Every result has a *moment*, the least watermark at which it is certain. A step from one watermark to the next returns
the results whose moment lies between, so that each is returned once, however the stream is cut.

Where times are imprecise, the time of an event is its earliest; watermarks are of these times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.model.time import Window

Ticks = TypeVar("Ticks", int, Array)


class Certain(Enum):
    """By what a result's moment is decided."""

    LAST = "last event"
    LATEST = "latest time of the last event"
    FIRST = "first event"
    WINDOW = "end of the window"


@dataclass(frozen=True)
class EmissionPolicy:
    """`reach`: how many times WITHIN a result without windows looks back.

    `pane`: events that are certain become summaries, of so many ticks at most, and are not needed again.
    `slack`: so many ticks after its earliest time an event may have happened. A match without windows that is not
    certain may end so much before the watermark, and its first event may seem to have happened so much earlier.
    """

    window: Window
    certain: Certain
    reach: int = 1
    pane: int | None = None
    slack: int = field(default=0, repr=False)

    def needs(self, watermark: int) -> int:
        """Events before this are not needed when the watermark has come so far."""
        return self.oldest(watermark) if self.pane is None else watermark

    def oldest(self, watermark: int) -> int:
        """Nothing before this, be it events or summaries, matters for results that are not certain yet."""
        if self.window.within is None:
            return -(2**62)
        if self.window.slide is None:
            return watermark - self.reach * self.window.within - 2 * self.slack + 1
        return self.first_open(watermark) - self.slack

    def first_open(self, watermark: int) -> int:
        """The start of the first window that the watermark has not passed."""
        assert self.window.within is not None
        assert self.window.slide is not None
        return ((watermark - self.window.within) // self.window.slide + 1) * self.window.slide

    def forgotten(self, time: Ticks) -> Ticks:
        """The watermark at which an event of that time does not matter any more."""
        assert self.window.within is not None
        if self.window.slide is None:
            return time + self.reach * self.window.within + 2 * self.slack
        return (time + self.slack) // self.window.slide * self.window.slide + self.window.within

    def closes(self, earliest: int, after: int) -> int:
        """The least watermark beyond `after` that may make a result certain, where the earliest event has that time."""
        assert self.window.within is not None
        if self.window.slide is None:
            return max(earliest + self.window.within, after + 1)
        start = ((earliest - self.window.within) // self.window.slide + 1) * self.window.slide
        return max(start, self.first_open(after)) + self.window.within

    def last_end(self, watermark: int) -> int:
        """The end of the latest window that the watermark has passed."""
        assert self.window.within is not None
        assert self.window.slide is not None
        return self.first_open(watermark) - self.window.slide + self.window.within

    def moment(self, first: Array, last: Array, start: Array | None) -> Array:
        """The least watermark at which matches with these times of first and last events are certain."""
        if self.certain in (Certain.LAST, Certain.LATEST):
            return last + 1
        assert self.window.within is not None
        return (first if start is None else start) + self.window.within


@dataclass(frozen=True)
class JointEmission(EmissionPolicy):
    """Several queries in sliding windows: `window` is the longest, `windows` are all of them."""

    windows: tuple[Window, ...] = ()

    @property
    def _each(self) -> tuple[EmissionPolicy, ...]:
        return tuple(EmissionPolicy(window, self.certain) for window in self.windows)

    def oldest(self, watermark: int) -> int:
        return min(one.oldest(watermark) for one in self._each)

    def forgotten(self, time: Ticks) -> Ticks:
        raise NotImplementedError("windows close, and no result is certain before")

    def closes(self, earliest: int, after: int) -> int:
        return min(one.closes(earliest, after) for one in self._each)


def joint_emission(windows: Iterable[Window]) -> EmissionPolicy:
    """The policy of queries whose results are certain when a window ends."""
    different = tuple(dict.fromkeys(windows))
    return JointEmission(max(different, key=lambda one: one.within or 1), Certain.WINDOW, windows=different)


def between(moment: Array, before: int | None, watermark: int | None) -> Array:
    """Which moments lie after `before` and not after the watermark; None: as far as it goes."""
    found = np.ones(len(moment), np.bool_)
    if before is not None:
        found &= moment > before
    if watermark is not None:
        found &= moment <= watermark
    return found
