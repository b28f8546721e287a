"""Until when the optimizer may work: every step stops there with what it has, and its result is valid."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

LEAST_DONE = 8
"""Things that a step does in any case."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock; None: there is all the time in the world. `begun`: when work began."""

    until: float | None = None
    begun: float = 0.0

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        now = monotonic()
        return cls(None if seconds is None else now + seconds, now)

    @property
    def is_over(self) -> bool:
        return self.until is not None and monotonic() >= self.until

    def is_over_at(self, done: int) -> bool:
        """The same for a step that has done so many things, a few of which it does in any case."""
        return done >= LEAST_DONE and self.is_over

    def share(self, part: float) -> Deadline:
        """The end of a part of the time that is left."""
        if self.until is None:
            return self
        now = monotonic()
        return Deadline(now + max(self.until - now, 0.0) * part, self.begun)

    def in_proportion(self, times: float) -> Deadline:
        """The end of so many times the time that has passed since work began, or this one if it is sooner."""
        if self.until is None:
            return self
        return Deadline(min(self.until, self.begun + times * (monotonic() - self.begun)), self.begun)


NEVER = Deadline()
