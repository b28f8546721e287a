"""Zones: which moment a local time is. One definition, for the times of events and for times written in queries.

A time that clocks show twice (summer time ends) is the earlier of the two; one that no clock shows (summer time begins)
counts on with the offset from before, so 02:30 on a night without 02:00 to 03:00 is what clocks call 03:30. That is
what Python's zoneinfo and Java do, so that Spark agrees. (Arrow does not: its zones end in 2037.)
"""

from __future__ import annotations

import datetime
import re
import zoneinfo

from trendloom.errors import OptionError, did_you_mean

UTC = "UTC"

_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST = int((datetime.datetime(1, 1, 2) - _EPOCH).total_seconds())
_LAST = int((datetime.datetime(9999, 12, 30) - _EPOCH).total_seconds())
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})")


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
