"""Expected aggregates and the probability of a match, against all worlds one after another."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.errors import RunError
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.contract.aggregates import Amounts, Measure, Totals
from trendloom.kernels.uncertain import expected as results
from trendloom.kernels.uncertain.expected import (
    FAR,
    PROBABILITY,
    ExpectedKernel,
    ExpectedOfSequence,
    _BlockExpectation,
    expected_totals,
)
from trendloom.model.imprecision import Masses
from trendloom.model.schema import Kind
from trendloom.model.time import Window

MEASURES = (
    Measure("matches", "matches", None, None, Kind.FLOAT),
    Measure("count_0", "count", (0,), None, Kind.FLOAT),
    Measure("count_01_x", "count", (0, 1), "x", Kind.FLOAT),
    Measure("sum_01_x", "sum", (0, 1), "x", Kind.FLOAT),
    Measure("probability", PROBABILITY, None, None, Kind.FLOAT),
)


@dataclass(frozen=True)
class Seen:
    """An event that may be at some points, with what it holds; `given`: how likely each point is, not divided yet."""

    key: int
    place: int
    first: int
    last: int
    x: float | None = None
    given: tuple[float, ...] | None = None

    @property
    def chances(self) -> list[tuple[int, Fraction]]:
        points = range(self.first, self.last + 1)
        weights = [Fraction(1)] * len(points) if self.given is None else [Fraction(one) for one in self.given]
        return [(point, weight / sum(weights)) for point, weight in zip(points, weights, strict=True) if weight]


def block_of(events: list[Seen], grain: int = 1) -> IntervalBlock:
    events = sorted(events, key=lambda event: (event.key, event.first))
    keys = 1 + max((event.key for event in events), default=0)
    key = np.array([event.key for event in events], np.int64)
    masses = None
    if any(event.given is not None for event in events):
        offsets = np.r_[0, np.cumsum([len(event.given or ()) for event in events])].astype(np.int64)
        masses = Masses(offsets, np.array([one for event in events for one in event.given or ()], np.float64))
    x = Vector(
        Kind.FLOAT,
        np.array([0.0 if event.x is None else event.x for event in events]),
        np.array([event.x is not None for event in events], np.bool_),
    )
    fits = np.array([1 << event.place for event in events], np.uint64)
    return IntervalBlock(
        np.searchsorted(key, np.arange(keys + 1)), np.array([event.first * grain for event in events], np.int64),
        np.arange(len(events)), {"x": x}, (fits,), tuple(range(64)), None, None,
        np.array([event.last * grain for event in events], np.int64), grain, masses,
    )  # fmt: skip


def of_all_worlds(events: list[Seen], places: int, window: Window, grain: int) -> dict[tuple[int, int], list[Fraction]]:
    """The definition: every world, every window, every choice of events in order."""
    found: dict[tuple[int, int], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 5)
    for key in {event.key for event in events}:
        mine = [event for event in events if event.key == key]
        for world in itertools.product(*(event.chances for event in mine)):
            chance = math.prod((one for _, one in world), start=Fraction(1))
            times = [point * grain for point, _ in world]
            for start in starts_of(times, window):
                within = [(time, event) for time, event in zip(times, mine, strict=True) if holds(window, start, time)]
                matches = list(in_order(within, places))
                if not matches:
                    continue
                known = [event.x for match in matches for event in match[:2] if event.x is not None]
                told = [len(matches), len(matches), len(known), sum(map(Fraction, known)), 1]
                found[key, start] = [a + chance * b for a, b in zip(found[key, start], told, strict=True)]
    return dict(found)


def starts_of(times: list[int], window: Window) -> list[int]:
    if window.slide is None or window.within is None:
        return [0]
    least, most = (min(times) - window.within) // window.slide, max(times) // window.slide
    return [number * window.slide for number in range(least, most + 1)]


def holds(window: Window, start: int, time: int) -> bool:
    return window.slide is None or window.within is None or start <= time < start + window.within


def in_order(timed: list[tuple[int, Seen]], places: int) -> list[list[Seen]]:
    choices = [[one for one in timed if one[1].place == place] for place in range(places)]
    return [
        [event for _, event in chosen]
        for chosen in itertools.product(*choices)
        if all(a[0] < b[0] for a, b in itertools.pairwise(chosen))
    ]


def expectation_of(places: int, window: Window) -> ExpectedOfSequence:
    return ExpectedOfSequence(tuple(range(places)), MEASURES, window)


def exact_numbers(expectation: ExpectedOfSequence, block: IntervalBlock) -> dict[tuple[int, int], list[Fraction]]:
    """By key and start of the window, as fractions: the matches, the sums, and the probability."""
    expected = _BlockExpectation(expectation, block)
    found, totals = expected.sweep(block, (-FAR, FAR), exact=True)
    chances = expected.exact_probabilities(found[:, 0], found[:, 1])
    numbers = [[Fraction(number) for number in (*row, chance)] for row, chance in zip(totals, chances, strict=True)]
    return {(int(place[0]), int(place[1])): row for place, row in zip(found, numbers, strict=True)}


@st.composite
def seen(draw: st.DrawFn, places: int) -> Seen:
    first = draw(st.integers(-4, 8))
    points = draw(st.integers(1, 4))
    given = None
    if draw(st.booleans()):
        inner = draw(st.lists(st.sampled_from([0.0, 0.125, 0.25, 1 / 3]), min_size=points, max_size=points))
        inner[0], inner[-1] = inner[0] or 0.5, inner[-1] or 0.1  # the ends are possible
        given = tuple(inner)
    x = draw(st.none() | st.sampled_from([1.0, -2.5, 0.1, 7.0]))
    return Seen(draw(st.integers(0, 1)), draw(st.integers(0, places - 1)), first, first + points - 1, x, given)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Seen], int, Window, int]:
    places = draw(st.integers(1, 3))
    events = draw(st.lists(seen(places), min_size=1, max_size=5))
    slide = draw(st.none() | st.integers(1, 7))
    window = Window() if slide is None else Window(draw(st.integers(1, 12)), slide)
    return events, places, window, draw(st.sampled_from([1, 1, 2, 3]))


@given(streams())
@settings(max_examples=200, deadline=None)
def test_fractions_are_those_of_all_worlds(stream: tuple[list[Seen], int, Window, int]) -> None:
    events, places, window, grain = stream
    assert exact_numbers(expectation_of(places, window), block_of(events, grain)) == of_all_worlds(*stream)


@given(streams())
@settings(max_examples=200, deadline=None)
def test_doubles_are_those_of_all_worlds(stream: tuple[list[Seen], int, Window, int]) -> None:
    events, places, window, grain = stream
    expected = of_all_worlds(*stream)
    found = shown(expectation_of(places, window), block_of(events, grain))
    assert list(found) == sorted(expected)
    for place, numbers in found.items():
        assert numbers == pytest.approx([float(number) for number in expected[place]], rel=1e-13, abs=1e-13)


def shown(expectation: ExpectedOfSequence, block: IntervalBlock) -> dict[tuple[int, int], list[float]]:
    """Doubles by key and window, in the order in which they come."""
    return by_window(expected_totals(expectation, block), expectation)


def by_window(totals: Totals, expectation: ExpectedOfSequence) -> dict[tuple[int, int], list[float]]:
    columns = []
    for measure in expectation.measures:
        amounts = totals.values[measure.name]
        assert isinstance(amounts, Amounts)
        assert amounts.exponent is not None
        columns.append(np.ldexp(amounts.values, amounts.exponent.astype(np.int32)))
    return {
        (int(key), int(start)): [float(column[row]) for column in columns]
        for row, (key, start) in enumerate(zip(totals.key, totals.start, strict=True))
    }


def test_times_of_one_point_count_exactly() -> None:
    events = [Seen(0, 0, 1, 1, 2.0), Seen(0, 0, 2, 2, 3.0), Seen(0, 1, 3, 3, 5.0), Seen(0, 1, 2, 2, None)]
    assert shown(expectation_of(2, Window()), block_of(events)) == {(0, 0): [3.0, 3.0, 5.0, 17.0, 1.0]}


def test_only_the_windows_asked_for() -> None:
    events = [Seen(0, 0, 0, 5), Seen(0, 1, 3, 30), Seen(0, 0, 20, 22)]
    expectation, block = expectation_of(2, Window(10, 5)), block_of(events)
    whole = expected_totals(expectation, block)
    some = expected_totals(expectation, block, (5, 20))
    kept = np.flatnonzero((whole.start >= 5) & (whole.start < 20))
    assert some.start.tolist() == whole.start[kept].tolist() == [5, 15]
    assert np.array_equal(some.values["matches"].values, whole.values["matches"].values[kept])  # type: ignore[union-attr]


def test_chances_too_small_for_doubles_are_still_chances() -> None:
    """The product of the two is below the least double; the row and the number are there all the same."""
    block = block_of([Seen(0, 0, 0, 1, 4.0, (1e-200, 1.0)), Seen(0, 1, 0, 1, None, (1.0, 1e-250))])
    totals = expected_totals(expectation_of(2, Window()), block)
    product = Fraction(1e-200) * Fraction(1e-250) / (1 + Fraction(1e-200)) / (1 + Fraction(1e-250))
    assert exact_of(totals, "matches") / product == pytest.approx(1, rel=1e-15)
    assert exact_of(totals, "probability") == exact_of(totals, "matches")
    assert exact_of(totals, "sum_01_x") / product == pytest.approx(4, rel=1e-15)


def exact_of(totals: Totals, name: str) -> Fraction:
    """The number of the only result, which may be out of the range of doubles."""
    amounts = totals.values[name]
    assert isinstance(amounts, Amounts)
    assert amounts.exponent is not None
    assert len(totals) == 1
    return Fraction(float(amounts.values[0])) * Fraction(2) ** int(amounts.exponent[0])


def test_counts_too_large_for_doubles() -> None:
    """There are 40^200 sequences of precise events."""
    places = 200
    totals = expected_totals(
        ExpectedOfSequence(tuple(range(places)), MEASURES[:1], Window()), _many_places([40] * places)
    )
    assert exact_of(totals, "matches") / 40**places == pytest.approx(1, rel=1e-15)


def _many_places(counts: list[int]) -> IntervalBlock:
    """So many events at each place, one point after the other."""
    place = np.repeat(np.arange(len(counts)), counts)
    words = len(counts) // 64 + 1
    fits = tuple(
        np.where(place // 64 == word, np.uint64(1) << (place % 64).astype(np.uint64), 0) for word in range(words)
    )
    return IntervalBlock(
        np.array([0, len(place)]), place.astype(np.int64), np.arange(len(place)), {}, fits, tuple(range(len(counts))),
        None, None, place.astype(np.int64), 1, None,
    )  # fmt: skip


def test_a_probability_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_STEPS", 50)
    events = [Seen(0, place, 0, 9) for place in (0, 0, 1, 1)]
    with pytest.raises(RunError, match="takes more than 50 steps"):
        expected_totals(expectation_of(2, Window()), block_of(events))


def test_no_event_no_result() -> None:
    block = block_of([Seen(0, 0, 1, 2)]).only(np.zeros(1, np.bool_))
    assert len(expected_totals(expectation_of(2, Window(4, 2)), block)) == 0


@given(streams(), st.lists(st.integers(-6, 40), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_a_stream_cut_anywhere_gives_each_window_once(
    stream: tuple[list[Seen], int, Window, int], watermarks: list[int]
) -> None:
    events, places, window, grain = stream
    slack = max((event.last - event.first) * grain for event in events)
    kernel, block = ExpectedKernel(expectation_of(places, window), slack), block_of(events, grain)
    found: list[Totals] = []
    before: int | None = None
    for watermark in [*sorted({mark * grain for mark in watermarks}), None]:
        seen = block.only(np.full(len(block), True) if before is None else block.time >= kernel.emission.needs(before))
        seen = seen if watermark is None else seen.only(seen.time < watermark)
        assert isinstance(seen, IntervalBlock)
        given_out, state = kernel.step(kernel.load(None, before), seen, watermark)
        found += given_out if watermark is not None else kernel.finish(state)
        before = watermark
    parts = [by_window(totals, expectation_of(places, window)) for totals in found]
    assert sum(map(len, parts)) == len({place for part in parts for place in part})
    together = {place: numbers for part in parts for place, numbers in part.items()}
    expected = shown(expectation_of(places, window), block)
    assert together.keys() == expected.keys()
    for place, numbers in together.items():
        assert numbers == pytest.approx(expected[place], rel=1e-13, abs=1e-13)
