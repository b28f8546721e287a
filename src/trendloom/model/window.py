"""Windows in ticks: none, a bound on the length of a match, or windows that slide over the stream.

A sliding window is `[k·slide, k·slide + within)` for every integer k, aligned to time 0.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """`within` None: the whole stream. `slide` None: a match spans less than `within`. Else: sliding windows."""

    within: int | None = None
    slide: int | None = None

    @property
    def sliding(self) -> bool:
        return self.slide is not None

    @property
    def spanning(self) -> bool:
        """A bare WITHIN for rows per match: last time − first time < within."""
        return self.within is not None and self.slide is None
