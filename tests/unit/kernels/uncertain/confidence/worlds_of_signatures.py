"""Cases for confidences, and their answers by going through all worlds, in whole numbers and fractions alone."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from trendloom.kernels.columns.block import Block, IntervalBlock, with_intervals
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.uncertain.signatures import Rivals, Signatures
from trendloom.model.imprecision import Intervals, Masses

Row = tuple[int, int, bool, int, int]
"""A rival (by number), a gap, whether it is forbidden there, by what it is excused, what it excuses."""


@dataclass(frozen=True)
class Imprecise:
    """An event: its first point and the whole weights of its points; `given`: they are said, else all are alike."""

    low: int
    weights: tuple[int, ...]
    given: bool

    @property
    def high(self) -> int:
        return self.low + len(self.weights) - 1


@dataclass(frozen=True)
class Case:
    """A signature with its rivals."""

    events: tuple[Imprecise, ...]
    rivals: tuple[Imprecise, ...] = ()
    rows: tuple[Row, ...] = ()
    span: int | None = None
    window: tuple[int, int] | None = None

    def matches(self, times: tuple[int, ...]) -> bool:
        """Whether the signature is a match in a world."""
        bound, others = times[: len(self.events)], times[len(self.events) :]
        if any(later <= earlier for earlier, later in itertools.pairwise(bound)):
            return False
        if self.span is not None and bound[-1] - bound[0] >= self.span:
            return False
        if self.window is not None and not self.window[0] <= bound[0] <= bound[-1] <= self.window[1]:
            return False
        return not any(forbidden and self._hurts(row, bound, others) for row in self.rows for forbidden in [row[2]])

    def _hurts(self, row: Row, bound: tuple[int, ...], others: tuple[int, ...]) -> bool:
        rival, gap, _, excused_by, _ = row
        return self._is_in(others[rival], gap, bound) and not any(
            excuses & excused_by and there == gap and self._is_in(others[other], gap, bound)
            and others[other] < others[rival]
            for other, there, _, _, excuses in self.rows
        )  # fmt: skip

    def _is_in(self, time: int, gap: int, bound: tuple[int, ...]) -> bool:
        low, high = -math.inf, math.inf
        if self.window is not None:
            low, high = self.window[0] - 1, self.window[1] + 1
        elif self.span is not None:
            low, high = bound[-1] - self.span, bound[0] + self.span
        if gap > 0:
            low = bound[gap - 1]
        if gap < len(bound):
            high = bound[gap]
        return low < time < high

    def answer(self) -> tuple[Fraction, int, int] | None:
        """Confidence and time range; None: it matches in no world."""
        everybody = self.events + self.rivals
        found, low, high = 0, None, None
        for world in itertools.product(*([(e.low + i, w) for i, w in enumerate(e.weights) if w] for e in everybody)):
            times = tuple(time for time, _ in world)
            if self.matches(times):
                found += math.prod(weight for _, weight in world)
                last = times[len(self.events) - 1]
                low = times[0] if low is None else min(low, times[0])
                high = last if high is None else max(high, last)
        if low is None or high is None:
            return None
        return Fraction(found, math.prod(sum(event.weights) for event in everybody)), low, high


def block_of(events: list[Imprecise], grain: int = 1) -> IntervalBlock:
    """A block of events as they are; kernels of confidence do not ask for its order."""
    count = len(events)
    low = np.array([event.low for event in events], np.int64) * grain
    high = np.array([event.high for event in events], np.int64) * grain
    masses = None
    if any(event.given for event in events):
        offsets = np.r_[0, np.cumsum([len(event.weights) if event.given else 0 for event in events])]
        values = [float(weight) for event in events if event.given for weight in event.weights]
        masses = Masses(offsets.astype(np.int64), np.array(values))
    block = Block(np.array([0, count]), low, np.arange(count), {})
    return with_intervals(block, Intervals(low, high, masses), grain)


def signatures_of(cases: list[Case], grain: int = 1) -> tuple[Signatures, IntervalBlock]:
    """Cases of one kind of limits as one chunk."""
    events: list[Imprecise] = []
    bound: list[int] = []
    rows: list[Any] = []
    lengths, counts = [0], [0]
    for case in cases:
        base = len(events)
        bound += range(base, base + len(case.events))
        events += case.events + case.rivals
        own = sorted((base + len(case.events) + rival, *rest) for rival, *rest in case.rows)
        rows += own
        lengths.append(lengths[-1] + len(case.events))
        counts.append(counts[-1] + len(own))
    window = None if cases[0].window is None else np.array([case.window for case in cases], np.int64)
    rivals = Rivals(np.array(counts, np.int64), np.array(rows, np.int64)) if rows else None
    positions = np.zeros(len(bound), np.int32)
    signatures = Signatures(Matches(np.array(lengths), np.array(bound), positions), window, cases[0].span, rivals)
    return signatures, block_of(events, grain)


@st.composite
def imprecise(draw: Any, around: int, most: int) -> Imprecise:
    """An event near a point; with given weights it may have holes, but not at its ends."""
    size = draw(st.integers(1, most))
    low = around + draw(st.integers(-3, 2))
    if draw(st.booleans()):
        return Imprecise(low, (1,) * size, False)
    ends, inside = st.integers(1, 5), st.integers(0, 3)
    return Imprecise(low, tuple(draw(ends if at in (0, size - 1) else inside) for at in range(size)), True)


@st.composite
def some_limits(draw: Any, least: int = 1) -> dict[str, Any]:
    """A span of so many points or more, a window, or neither."""
    kind = draw(st.sampled_from(["none", "span", "window"]))
    if kind == "none":
        return {}
    if kind == "span":
        return {"span": draw(st.integers(least, least + 9))}
    first = draw(st.integers(-4, 3))
    return {"window": (first, first + draw(st.integers(least - 1, least + 11)))}


@st.composite
def some_cases(draw: Any, most_rivals: int = 0, several_gaps: bool = False) -> Case:
    """Signatures of one to four events; rivals matter in one gap each, or in several."""
    length = draw(st.integers(1, 4 if most_rivals == 0 else 3))
    most = 5 if most_rivals == 0 else 4
    events = tuple(draw(imprecise(2 * number, most)) for number in range(length))
    places = draw(st.lists(st.integers(-1, 2 * length), min_size=min(most_rivals, 1), max_size=most_rivals))
    rivals = tuple(draw(imprecise(place, 3)) for place in places)
    rows: list[Row] = []
    for rival in range(len(rivals)):
        gaps = draw(st.sets(st.integers(0, length), min_size=1, max_size=length + 1 if several_gaps else 1))
        rows += [(rival, gap, draw(st.integers(0, 4)) > 0, 0, 0) for gap in sorted(gaps)]
    return Case(events, rivals, tuple(rows), **draw(some_limits()))


ROLES = [
    (True, 1, 0), (False, 0, 1), (True, 1, 0), (False, 0, 1), (True, 1, 1), (True, 0, 1), (True, 3, 0), (True, 2, 0),
    (False, 0, 2), (False, 0, 3), (True, 0, 0),
]  # fmt: skip
"""What a rival is in a gap: forbidden or not, by what it is excused, what it excuses."""


@st.composite
def excused_cases(draw: Any) -> Case:
    """Two or three events with room between them, and rivals there of which some excuse others."""
    length = draw(st.integers(2, 3))
    events = tuple(draw(imprecise(5 * number, 3)) for number in range(length))
    places = draw(st.lists(st.integers(0, 5 * length - 4), min_size=2, max_size=4))
    rivals = tuple(draw(imprecise(place, 4)) for place in places)
    rows: list[Row] = []
    for rival in range(len(rivals)):
        role = draw(st.sampled_from(ROLES))
        for gap in sorted(draw(st.sets(st.integers(1, length - 1), min_size=1))):
            rows.append((rival, gap, *role))
            role = draw(st.sampled_from([role, *ROLES]))
        if draw(st.integers(0, 9)) == 0:
            rows.append((rival, draw(st.sampled_from([0, length])), True, 0, 0))
        if draw(st.integers(0, 9)) == 0:
            rows.append((rival, rows[-1][1], True, 2 if rows[-1][1] in range(1, length) else 0, 0))
    return Case(events, rivals, tuple(rows), **draw(some_limits(4 * length - 2)))
