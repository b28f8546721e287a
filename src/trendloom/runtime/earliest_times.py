"""The times of events as a stream goes by them; where they are imprecise, the earliest that each may have had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.io.events import ticks
from trendloom.io.intervals import intervals_of
from trendloom.model.schema import Schema

Array = np.ndarray[Any, Any]


def has_time(events: pa.Table, schema: Schema) -> Array:
    """Which events have a time, or all that says when they may have happened."""
    found: Array = np.logical_and.reduce([np.asarray(events[name].is_valid()) for name in schema.said_in])
    return found


def earliest_times(events: pa.Table, schema: Schema) -> Array:
    """The ticks of events that all have a time."""
    if schema.imprecise:
        return intervals_of(events, schema, numbered=False).low
    return ticks(events[schema.time], schema.axis)


def since_grain(tick: int, schema: Schema) -> int:
    """A watermark in whole grains: an event that begins no earlier is still no earlier when its time is floored."""
    grain = 1 if schema.imprecision is None else schema.imprecision.grain
    return tick // grain * grain


def at_grain(tick: int, schema: Schema) -> int:
    """The least watermark that is so many ticks even in whole grains."""
    grain = 1 if schema.imprecision is None else schema.imprecision.grain
    return -(-tick // grain) * grain
