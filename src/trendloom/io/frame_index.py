"""Times in the index of a pandas frame, where people who work with time series keep them.

The index becomes the column that is asked for, if the frame has none of that name; pandas itself is not imported. Cost:
the frame is copied once by pandas, column by column.
"""

from __future__ import annotations

from typing import Any

from trendloom.errors import DataError, option


def with_times_of_index(source: Any, time: str, low: str | None = None) -> object:
    """The frame with the times of its index as a column; anything else, and times between bounds, as they are."""
    if type(source).__module__.partition(".")[0] != "pandas" or not hasattr(source, "columns"):
        return source
    if low is not None or time in source.columns:
        return source
    index = source.index
    if time in index.names:
        return source.reset_index(level=time)
    if type(index).__name__ != "DatetimeIndex":
        return source
    if index.name is None:
        return source.reset_index(names=time)
    raise DataError(
        f"there is no column '{time}' for the time of events, but the index '{index.name}' holds times",
        hint=f"{option('time', str(index.name))} takes the index; frame.reset_index() makes a column of it",
    )
