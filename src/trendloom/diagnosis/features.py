"""Features: a number per window, computed from the events of one type; reasons are formulas over them.

A feature is defined by its events (a type, or those of it whose text column has one value: a *category*), an attribute
and a function. A `FeatureTable` holds many features over the same windows as one matrix, so that each later step
handles all features at once.

Numbers are rounded to 40 bits (about 12 digits): a mean depends on the order of addition in its last bits, and whether
two windows have *equal* values decides how well a feature separates them. So neither the order of rows nor the engine
that adds changes a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trendloom.errors import DataError, OptionError, RunError, did_you_mean

Floats = npt.NDArray[np.float64]
Ticks = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

FUNCTIONS = ("count", "mean", "min", "max", "deviation", "change")
"""Functions of the events of a window. `deviation`: the population standard deviation; `change`: the last value
minus the first (of equal times the greatest value is last and the least is first)."""

SIMPLEST = ("mean", "count", "min", "max", "change", "deviation")
"""The same, simplest answer first; functions of the user follow."""

BITS = 40
WORDS = {"min": "least ", "max": "greatest ", "deviation": "spread of ", "change": "change of "}


@dataclass(frozen=True)
class Feature:
    """One feature. `category`: a column and its value; `attribute` None: of the events themselves (their count).

    `window`: ticks; `length`: the same as people write it, which is redundant, so it does not distinguish features.
    """

    type: str
    attribute: str | None
    function: str
    category: tuple[str, str] | None = None
    window: int = 0
    length: str = field(default="", compare=False)

    @property
    def source(self) -> str:
        """The events and their attribute: `DataIO[node = n3].size`."""
        where = "" if self.category is None else f"[{self.category[0]} = {self.category[1]}]"
        return f"{self.type}{where}" + ("" if self.attribute is None else f".{self.attribute}")

    @property
    def name(self) -> str:
        """`CPUUsage.idle mean over 30 s`."""
        return f"{self.source} {self.function} over {self.length or self.window}"

    @property
    def words(self) -> str:
        """The feature in words: `free memory`, `number of TaskStart events (node n3)`."""
        where = "" if self.category is None else f" ({self.category[0]} {self.category[1]})"
        if self.attribute is None:
            return f"number of {self.type} events{where}"
        what = f"{_in_words(self.attribute)} {_in_words(self.type)}"
        if self.function == "count":
            return f"number of values of {what}{where}"
        return WORDS.get(self.function, "" if self.function == "mean" else f"{self.function} of ") + what + where

    @property
    def place(self) -> tuple[Any, ...]:
        """Simple features first, then by name: a total order of the features of a diagnosis."""
        simple = SIMPLEST.index(self.function) if self.function in SIMPLEST else len(SIMPLEST)
        return (self.category is not None, simple, self.window, self.source, self.function)

    def __lt__(self, other: Feature) -> bool:
        return self.place < other.place

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"category": None if self.category is None else list(self.category)}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Feature:
        category = found["category"]
        return Feature(
            found["type"],
            found["attribute"],
            found["function"],
            None if category is None else (category[0], category[1]),
            found["window"],
            found.get("length", ""),
        )


def _in_words(name: str) -> str:
    """`usagePercent` and `usage_percent` are both `usage percent`; abbreviations stay as they are."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name.replace("_", " ")).split()
    return " ".join(part if part.isupper() else part.lower() for part in parts)


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """`values[f, w]`: the value of feature f in the window that starts at `starts[w]`; NaN where it has none.

    Windows are [k·window, (k + 1)·window), ascending, not necessarily one after the other.
    """

    features: tuple[Feature, ...]
    window: int
    starts: Ticks
    values: Floats

    def __len__(self) -> int:
        return len(self.features)

    @property
    def length(self) -> str:
        """The window as people write it."""
        return next((f.length for f in self.features if f.length), str(self.window))

    def rows(self, features: Iterable[Feature]) -> npt.NDArray[np.intp]:
        """The rows of features; one that is missing is an error."""
        places = {feature: place for place, feature in enumerate(self.features)}
        wanted = list(features)
        missing = [feature.name for feature in wanted if feature not in places]
        if missing:
            raise DataError(
                f"the events give no feature '{missing[0]}'",
                hint=f"there are {len(places):,} features over {self.length}; its type or value may be missing",
            )
        return np.array([places[feature] for feature in wanted], np.intp)

    def take(self, features: Sequence[Feature]) -> FeatureTable:
        """Some features only, in the order asked for."""
        return FeatureTable(tuple(features), self.window, self.starts, self.values[self.rows(features)])

    def within(self, low: int, high: int) -> Truths:
        """Which windows lie whole inside [low, high)."""
        return np.asarray((self.starts >= low) & (self.starts + self.window <= high))

    def at(self, times: Ticks) -> Floats:
        """All features at points of time: those of the window that holds each; NaN where no window does."""
        places = np.searchsorted(self.starts, times, side="right") - 1
        held = (places >= 0) & (times < self.starts[places] + self.window) if len(self.starts) else places > 0
        found = np.full((len(self.features), len(times)), np.nan)
        found[:, held] = self.values[:, places[held]]
        return found


def rounded(values: Floats) -> Floats:
    """Numbers of 40 bits: equal where they differ by rounding only (but for the few that lie at a border)."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(mantissa * 2.0**BITS), exponent - BITS))


# ---------------------------------------------------------------------------------- which features a type has
#
# That depends on all events of the type: a text column is a category if it has few values, and a column is counted by
# itself if some event lacks it. A task that sees only some of the windows therefore returns every possible feature with
# the facts that decide (`TypeFacts`); `archived_features.joined_in_time` adds up the facts and keeps what is a feature.


MOST_VALUES = 20
"""Of a text column, over all windows: with more it is no category."""


@dataclass(frozen=True)
class CategoryFacts:
    """The values of a text column (at most one more than `MOST_VALUES`), and whether some event has none."""

    values: frozenset[str] = frozenset()
    lacking: bool = False

    def __add__(self, other: CategoryFacts) -> CategoryFacts:
        return CategoryFacts(self.values | other.values, self.lacking or other.lacking)


@dataclass(frozen=True)
class AttributeFacts:
    """The number of events that have a value of a numeric column, and of those whose value is not left out."""

    present: int = 0
    counted: int = 0

    def __add__(self, other: AttributeFacts) -> AttributeFacts:
        return AttributeFacts(self.present + other.present, self.counted + other.counted)


@dataclass(frozen=True)
class TypeFacts:
    """Facts that decide which features a type has: the number of events in the windows, the number that may be counted,
    and their columns. `whole`: these are all events of the type; otherwise every possible feature is one."""

    events: int
    counted: int
    categories: Mapping[str, CategoryFacts]
    attributes: dict[str, AttributeFacts]
    whole: bool = True

    def __add__(self, other: TypeFacts) -> TypeFacts:
        categories, attributes = dict(self.categories), dict(self.attributes)
        for name, category in other.categories.items():
            categories[name] = categories.get(name, CategoryFacts()) + category
        for name, attribute in other.attributes.items():
            attributes[name] = attributes.get(name, AttributeFacts()) + attribute
        return TypeFacts(self.events + other.events, self.counted + other.counted, categories, attributes)

    def is_category(self, name: str) -> bool:
        """Whether a column has few values. One value that all events share adds no information."""
        known = self.categories[name]
        count = len(known.values)
        return 0 < count <= MOST_VALUES and (count > 1 or known.lacking or not self.whole)

    def is_counted(self, attribute: str | None) -> bool:
        """Whether the values of a column (None: events) are counted; a column that no event lacks is not."""
        if not self.whole:
            return True
        if attribute is None:
            return self.counted > 0 or self.events == 0
        known = self.attributes[attribute]
        return known.counted > 0 and known.present < self.events

    def has(self, feature: Feature) -> bool:
        """Whether a feature that a part returned is a feature of the whole."""
        if feature.category is not None and not self.is_category(feature.category[0]):
            return False
        return feature.function != "count" or self.is_counted(feature.attribute)


@dataclass(frozen=True, eq=False)
class FeaturePart:
    """Features over some of the windows, and the facts of each type there."""

    table: FeatureTable
    facts: Mapping[str, TypeFacts]


# --------------------------------------------------------------------------------------- functions of windows
#
# Rows are sorted by group (a window, or a window of one category) and time, so a group is a stretch of rows, and every
# function is a few passes of `reduceat` over the column. Groups without a value have no stretch.
# Cost: O(rows) for each function; the stretches are found once for all columns that lack no value.


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
    """The value of each function but `count` for each stretch. `of`: the column as errors name it."""
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
            last = _reduced(np.maximum, values, rows.last_begins, rows.ends)
            found["change"] = last - _reduced(np.minimum, values, rows.begins, rows.first_ends)
    found = {name: found[name] for name in functions if name != "count"}
    return found | {name: rounded(_of_user(name, extra[name], values, rows, of)) for name in extra}


def _deviation(values: Floats, rows: WindowedRows, mean: Floats) -> Floats:
    apart = values - np.repeat(mean, rows.sizes)
    return np.asarray(np.sqrt(np.add.reduceat(apart * apart, rows.begins) / rows.sizes))


def _reduced(function: np.ufunc, values: Floats, begins: Places, ends: Places) -> Floats:
    """A function over stretches that need not be adjacent; most have one row."""
    if np.array_equal(begins + 1, ends):
        return np.asarray(values[begins])
    pairs = np.stack([begins, ends], axis=1).ravel()
    return np.asarray(function.reduceat(np.r_[values, values[-1]], pairs)[::2])


def _of_user(name: str, function: UserFunction, values: Floats, rows: WindowedRows, of: str) -> Floats:
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
    """Refuse unknown functions, and functions of the user that have the name of one of ours."""
    for name in functions:
        if name not in FUNCTIONS:
            raise OptionError(f"there is no feature function '{name}'", hint=did_you_mean(name, FUNCTIONS))
    for name in extra:
        if name in FUNCTIONS:
            raise OptionError(f"'{name}' is a feature function already", hint="give yours another name")
