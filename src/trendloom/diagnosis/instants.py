"""Times as people write them, in ticks of an archive's time column; and ticks as people read them.

Text is a time of the zone that the caller names, or of the one it names itself; whole numbers are ticks already: the
numbers of an integer column, microseconds since 1970 of timestamps.
"""

from __future__ import annotations

import datetime
import re

from trendloom.errors import OptionError, option
from trendloom.model.time import UTC, TimeAxis, zone_named

Moment = int | str | datetime.datetime
"""A time as callers give it."""

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TICK = datetime.timedelta(microseconds=1)
WHOLE = re.compile(r"\s*[+-]?\d+\s*")


def tick_of(moment: Moment, axis: TimeAxis, zone: str | None, name: str) -> int:
    """The tick of a time; `name` is the option it was given with."""
    if isinstance(moment, bool) or not isinstance(moment, int | str | datetime.datetime):
        raise OptionError(f"{moment!r} is not a time", hint=_example(axis, name))
    if isinstance(moment, int) or (isinstance(moment, str) and WHOLE.fullmatch(moment)):
        return int(moment)
    if not axis.timestamp:
        raise OptionError(
            f"'{moment}' is not a time of this archive: its times are whole numbers", hint=_example(axis, name)
        )
    if isinstance(moment, str):
        try:
            moment = datetime.datetime.fromisoformat(moment.strip())
        except ValueError:
            raise OptionError(f"'{moment}' is not a time", hint=_example(axis, name)) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_named(zone or UTC))
    return (moment - EPOCH) // TICK


def _example(axis: TimeAxis, name: str) -> str:
    return f"for example {option(name)} " + ("'2024-01-31 12:00:00'" if axis.timestamp else "1200")


def shown_tick(tick: int, axis: TimeAxis, zone: str | None = None) -> str:
    """A time as people read it, in their zone."""
    if not axis.timestamp:
        return str(tick)
    try:
        moment = (EPOCH + tick * TICK).astimezone(zone_named(zone or UTC))
    except OverflowError:
        return f"{tick} us"
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text if zone in (None, UTC) else f"{text} {zone}"
