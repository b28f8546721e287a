"""Stretches of a chart that a visitor has marked, as the browser keeps them: JSON in, JSON out, nothing on the server.

Marks belong to one chart; those of another are forgotten when it is chosen. Two of a kind that touch become one; an
abnormal and a reference mark that overlap contradict each other, and the newer one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trendloom.errors import OptionError
from trendloom.model.time import TimeAxis
from trendloom.viz.canvas import as_times
from trendloom.viz.reasons import MarkedSpan

ABNORMAL, REFERENCE = "abnormal", "reference"
KINDS = (ABNORMAL, REFERENCE)
MOST = 50
"""Most marks of a chart: more than one draws by hand."""

SECOND = 1_000_000
"""Ticks of timestamps."""

Stretch = tuple[int, int]


@dataclass(frozen=True)
class Marks:
    """Marked stretches [from, to) in ticks, of the chart that `chart` names."""

    chart: str = ""
    abnormal: tuple[Stretch, ...] = ()
    reference: tuple[Stretch, ...] = ()

    def of(self, kind: str) -> tuple[Stretch, ...]:
        return self.abnormal if kind == ABNORMAL else self.reference

    def listed(self) -> list[tuple[str, Stretch]]:
        """All of them, in the order in which they are shown."""
        return [(kind, one) for kind in KINDS for one in self.of(kind)]

    def with_mark(self, kind: str, low: int, high: int) -> Marks:
        """One more; it joins those of its kind that it touches."""
        if kind not in KINDS:
            raise OptionError(f"'{kind}' is not a kind of mark", hint="mark abnormal or reference")
        if low >= high:
            raise OptionError("the interval is empty", hint="it ends after it begins")
        other = REFERENCE if kind == ABNORMAL else ABNORMAL
        if any(one[0] < high and low < one[1] for one in self.of(other)):
            raise OptionError(f"this overlaps a stretch that is marked {other}", hint="remove that one first")
        if len(self.listed()) >= MOST:
            raise OptionError(f"{MOST} stretches are marked already", hint="remove some first")
        apart = [one for one in self.of(kind) if one[1] < low or one[0] > high]
        touched = [one for one in self.of(kind) if one not in apart]
        joined = min([low, *(one[0] for one in touched)]), max([high, *(one[1] for one in touched)])
        return self._with(kind, tuple(sorted([*apart, joined])))

    def without(self, place: int) -> Marks:
        """All but the one at this place of the list."""
        if not 0 <= place < len(self.listed()):
            return self
        kind, gone = self.listed()[place]
        return self._with(kind, tuple(one for one in self.of(kind) if one != gone))

    def _with(self, kind: str, found: tuple[Stretch, ...]) -> Marks:
        return replace(self, abnormal=found) if kind == ABNORMAL else replace(self, reference=found)

    def spans(self, *, dated: bool) -> tuple[MarkedSpan, ...]:
        """As the chart shades them."""
        ends = [(kind, as_times(np.array(one), dated=dated)) for kind, one in self.listed()]
        return tuple(MarkedSpan(pair[0], pair[1], kind) for kind, pair in ends)

    def to_json(self) -> dict[str, Any]:
        """Ticks as text: numbers of JavaScript would lose microseconds of far dates."""
        return {"chart": self.chart, **{kind: [[str(a), str(b)] for a, b in self.of(kind)] for kind in KINDS}}

    @staticmethod
    def from_json(found: Any, chart: str) -> Marks:
        """The marks that the browser has kept for this chart; none where it has sent anything else."""
        if not isinstance(found, Mapping) or found.get("chart") != chart:
            return Marks(chart)
        return Marks(chart, _stretches(found.get(ABNORMAL)), _stretches(found.get(REFERENCE)))


def _stretches(found: Any) -> tuple[Stretch, ...]:
    try:
        pairs = [(int(low), int(high)) for low, high in found[:MOST]]
    except (TypeError, ValueError):
        return ()
    return tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))


# --------------------------------------------------------------------------------------------------- times


def tick_at(place: object, axis: TimeAxis) -> int:
    """The tick of a place on the time axis, or of a typed time: a date of UTC, or a number."""
    text = str(place).strip()
    try:
        if axis.timestamp:
            moment = np.datetime64(text.removesuffix("Z").replace(" ", "T", 1), "us")
            if np.isnat(moment):
                raise ValueError
            return int(moment.astype(np.int64))
        number = float(text)
        if not math.isfinite(number):
            raise ValueError
        return int(text) if text.lstrip("+-").isdigit() else math.floor(number)
    except (ValueError, OverflowError):
        example = "2024-01-31 12:00:00" if axis.timestamp else "1200"
        raise OptionError(f"'{text}' is not a time", hint=f"write it like {example}") from None


def shown_tick(tick: int, axis: TimeAxis) -> str:
    """A tick as `tick_at` reads it."""
    if not axis.timestamp:
        return str(tick)
    text = str(np.datetime64(tick, "us")).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def selected_stretch(selected: Any, axis: TimeAxis) -> Stretch | None:
    """The stretch selected on the chart, in whole seconds where that is fine enough; None without a selection."""
    ends = selected.get("range", {}).get("x") if isinstance(selected, Mapping) else None
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        return None
    low, high = sorted(tick_at(end, axis) for end in ends)
    grain = SECOND if axis.timestamp and high - low >= 60 * SECOND else 1
    low, high = low // grain * grain, -(-high // grain) * grain
    return (low, high) if low < high else None
