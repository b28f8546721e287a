"""Time axes, durations, windows and zones: every time inside Trendloom is a whole number of ticks.

An integer time column has ticks of its own unit (seconds by default); a timestamp column has microseconds.
A duration in a query becomes ticks exactly, or is refused: rounding a window would change answers.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from dataclasses import dataclass
from fractions import Fraction

from trendloom.errors import OptionError, did_you_mean

MICROSECONDS: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""Length of each unit of the language, by its short name."""

UNIT_WORDS: dict[str, str] = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
}
"""Full words (singular) to short names."""

UTC = "UTC"

_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST = int((datetime.datetime(1, 1, 2) - _EPOCH).total_seconds())
_LAST = int((datetime.datetime(9999, 12, 30) - _EPOCH).total_seconds())
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})")


@dataclass(frozen=True)
class TimeAxis:
    """What one tick is. `tick` is its length in microseconds; `timestamp`: whether times are dates."""

    tick: Fraction
    timestamp: bool

    @staticmethod
    def integer(unit: str = "s") -> TimeAxis:
        """An integer column that counts `unit`s."""
        return TimeAxis(Fraction(MICROSECONDS[unit]), False)

    @staticmethod
    def timestamps() -> TimeAxis:
        return TimeAxis(Fraction(1), True)

    def ticks(self, amount: Fraction, unit: str | None) -> int | None:
        """A duration in whole ticks; None where it is not a whole number of them.

        `unit` None means the axis' own unit, which only an integer axis has.
        """
        length = amount if unit is None else amount * MICROSECONDS[unit] / self.tick
        return int(length) if length.denominator == 1 else None


@dataclass(frozen=True)
class Window:
    """A window in ticks. `within` None: the whole stream. `slide` None: a match spans less than `within`.

    Else windows slide over the stream: `[k·slide, k·slide + within)` for every integer k, aligned to time 0.
    """

    within: int | None = None
    slide: int | None = None

    @property
    def sliding(self) -> bool:
        return self.slide is not None

    @property
    def spanning(self) -> bool:
        """A bare WITHIN for rows per match: last time − first time < within."""
        return self.within is not None and self.slide is None


# ---------------------------------------------------------------------------------------------------- zones
#
# One definition, for the times of events and for times written in queries. A time that clocks show twice (summer time
# ends) is the earlier of the two; one that no clock shows (summer time begins) counts on with the offset from before,
# so 02:30 on a night without 02:00 to 03:00 is what clocks call 03:30. Python's zoneinfo and Java do the same, so Spark
# agrees. (Arrow does not: its zones end in 2037.)


def zone_named(name: str) -> datetime.tzinfo:
    """The zone of a name such as Europe/Paris, or of an offset such as +02:00; an unknown one is refused."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        length = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        if length < datetime.timedelta(hours=18):
            return datetime.timezone(-length if sign == "-" else length)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise OptionError(f"there is no time zone '{name}'", hint=_nearest(name)) from None


def _nearest(name: str) -> str:
    """People write cities; zones are named Continent/City."""
    known = zoneinfo.available_timezones()
    cities = {zone.rpartition("/")[2].lower(): zone for zone in sorted(known)}
    city = cities.get(name.rpartition("/")[2].strip().lower().replace(" ", "_"))
    hint = f"did you mean '{city}'?" if city is not None else did_you_mean(name, known)
    return hint if hint is not None and hint.startswith("did") else "for example Europe/Paris, UTC or +02:00"


def offset_of_local(zone: datetime.tzinfo, seconds: int) -> int:
    """Seconds that local clocks are ahead of UTC when they show so many seconds since 1970."""
    shown = _EPOCH + datetime.timedelta(seconds=min(max(seconds, _FIRST), _LAST))
    return _seconds(shown.replace(tzinfo=zone))


def offset_of_moment(zone: datetime.tzinfo, seconds: int) -> int:
    """Seconds that local clocks are ahead of UTC, so many seconds after 1970 began in UTC."""
    moment = (_EPOCH + datetime.timedelta(seconds=min(max(seconds, _FIRST), _LAST))).replace(tzinfo=datetime.UTC)
    return _seconds(moment.astimezone(zone))


def _seconds(moment: datetime.datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None
    return round(offset.total_seconds())
