"""How a workload is run on a live stream: what the caller chooses, checked at once, before Spark is asked."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from trendloom.errors import OptionError, option
from trendloom.model.time import MICROSECONDS, UNIT_WORDS

DELAY = re.compile(r"\s*(\d+(?:\.\d+)?)\s+(microsecond|millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)
WEEK = 7 * 86_400_000_000


@dataclass(frozen=True)
class StreamSettings:
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

    @property
    def delay(self) -> int:
        """The delay of the watermark in milliseconds, rounded up."""
        told = DELAY.fullmatch(self.watermark or "")
        assert told is not None
        unit = told.group(2).lower()
        length = WEEK if unit == "week" else MICROSECONDS[UNIT_WORDS[unit]]
        return math.ceil(Fraction(told.group(1)) * length / 1000)


def absolute(place: str) -> str:
    """The whole path of a folder: Spark and its workers may run elsewhere than we do. What is on no disk stays."""
    return place if "://" in place else str(Path(place).resolve())
