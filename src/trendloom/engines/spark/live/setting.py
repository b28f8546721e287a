"""How a workload is run on a live stream: what the caller chooses, checked at once, before Spark is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from trendloom.errors import OptionError, option

DELAY = re.compile(r"\s*\d+(\.\d+)?\s+(microsecond|millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Setting:
    """How long to wait for late events, into how many buckets keys are put, and where later events go."""

    watermark: str | None
    buckets: int
    late_to: str | None = None

    def __post_init__(self) -> None:
        if self.watermark is None:
            raise OptionError(
                "a live stream needs a watermark: how long to wait for events that come late",
                hint=f'{option("watermark", "10 seconds")}, or "0 seconds" where events come in order',
            )
        if DELAY.fullmatch(self.watermark) is None:
            raise OptionError(
                f"'{self.watermark}' is not a delay", hint='a number and a unit, e.g. "10 seconds" or "2 minutes"'
            )
        if self.buckets < 1:
            raise OptionError("there must be at least one bucket")


def absolute(place: str) -> str:
    """The whole path of a folder: Spark and its workers may run elsewhere than we do. What is on no disk stays."""
    return place if "://" in place else str(Path(place).resolve())
