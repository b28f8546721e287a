"""What windows measure: one number per stretch of a sorted column, all stretches at once.

Rows are sorted by group (a window, or a window of one category) and time, so a group is a stretch of rows, and every
function is a few passes of `reduceat` over the column. Groups without a value have no stretch.

Cost: O(rows) for each function; the place of the stretches is found once for all columns that lack no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.features import FUNCTIONS, Floats, Ticks, rounded
from trendloom.errors import OptionError, RunError, did_you_mean

Places = npt.NDArray[np.intp]
UserFunction = Callable[[Floats, Places, Places], Floats]
"""Of values, and of the starts and ends of stretches (never empty, in order of time), to one number for each."""


@dataclass(frozen=True, eq=False)
class WindowedRows:
    """Stretches of rows of one group each: rows `begins[i]` to `ends[i]` (not included) are of group `groups[i]`.

    The rows of the least time of a stretch go to `first_ends`, those of the greatest begin at `last_begins`.
    """

    groups: Places
    begins: Places
    ends: Places
    first_ends: Places
    last_begins: Places

    @property
    def sizes(self) -> Places:
        return self.ends - self.begins


def windowed_rows(group: Places, times: Ticks) -> WindowedRows:
    """The stretches of rows that are sorted by group and time."""
    if not len(group):
        none = np.zeros(0, np.intp)
        return WindowedRows(none, none, none, none, none)
    new = np.r_[True, group[1:] != group[:-1]]
    moments = np.flatnonzero(new | np.r_[True, times[1:] != times[:-1]])
    begins = np.flatnonzero(new)
    ends = np.r_[begins[1:], len(group)]
    after = np.r_[moments[1:], len(group)]
    first_ends = after[np.searchsorted(moments, begins)]
    last_begins = moments[np.searchsorted(moments, ends) - 1]
    return WindowedRows(group[begins], begins, ends, first_ends, last_begins)


def measure(
    values: Floats, rows: WindowedRows, functions: Sequence[str], extra: Mapping[str, UserFunction], of: str
) -> dict[str, Floats]:
    """What each function makes of each stretch; `count` is left to others. `of` names the column in errors."""
    found: dict[str, Floats] = {}
    if {"mean", "min", "max", "deviation"} & set(functions):
        least, most = np.minimum.reduceat(values, rows.begins), np.maximum.reduceat(values, rows.begins)
        found |= {"min": least, "max": most}
        with np.errstate(invalid="ignore", over="ignore"):
            # equal values have exactly that mean, and no deviation, whatever their sum is rounded to
            mean = np.clip(np.add.reduceat(values, rows.begins) / rows.sizes, least, most)
            found["mean"] = rounded(mean)
            if "deviation" in functions:
                found["deviation"] = rounded(_deviation(values, rows, mean))
    if "change" in functions:
        with np.errstate(invalid="ignore"):
            found["change"] = _last(values, rows) - _first(values, rows)
    found = {name: found[name] for name in functions if name != "count"}
    return found | {name: rounded(_asked(name, extra[name], values, rows, of)) for name in extra}


def _deviation(values: Floats, rows: WindowedRows, mean: Floats) -> Floats:
    apart = values - np.repeat(mean, rows.sizes)
    return np.asarray(np.sqrt(np.add.reduceat(apart * apart, rows.begins) / rows.sizes))


def _first(values: Floats, rows: WindowedRows) -> Floats:
    """The least value of the first moment of each stretch."""
    if np.array_equal(rows.begins + 1, rows.first_ends):
        return np.asarray(values[rows.begins])
    return _between(np.minimum, values, rows.begins, rows.first_ends)


def _last(values: Floats, rows: WindowedRows) -> Floats:
    if np.array_equal(rows.last_begins + 1, rows.ends):
        return np.asarray(values[rows.last_begins])
    return _between(np.maximum, values, rows.last_begins, rows.ends)


def _between(function: np.ufunc, values: Floats, begins: Places, ends: Places) -> Floats:
    """A function over stretches that need not follow on each other."""
    pairs = np.stack([begins, ends], axis=1).ravel()
    return np.asarray(function.reduceat(np.r_[values, values[-1]], pairs)[::2])


def _asked(name: str, function: UserFunction, values: Floats, rows: WindowedRows, of: str) -> Floats:
    try:
        found = np.asarray(function(values, rows.begins, rows.ends), np.float64)
    except Exception as error:
        raise RunError(
            f"feature function '{name}' failed on {of}: {type(error).__name__}: {error}",
            hint="it takes values and the starts and ends of stretches, and gives one number for each stretch",
        ) from error
    if found.shape != rows.begins.shape:
        raise RunError(
            f"feature function '{name}' gave an array of shape {found.shape} for {len(rows.begins):,} windows of {of}",
            hint="it must give one number for each of the starts",
        )
    return found


def check_functions(functions: Sequence[str], extra: Mapping[str, UserFunction]) -> None:
    """Functions by their names, and those of the user by other names."""
    for name in functions:
        if name not in FUNCTIONS:
            raise OptionError(f"there is no feature function '{name}'", hint=did_you_mean(name, FUNCTIONS))
    for name in extra:
        if name in FUNCTIONS:
            raise OptionError(f"'{name}' is a feature function already", hint="give yours another name")
