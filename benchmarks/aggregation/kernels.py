"""Rates of the aggregation kernels on one core, beside loops written by hand for the same pattern.

Every kernel starts from a sorted block, as in the engine. *Prepared* means that the tables of the pattern and the kinds
of the events are at hand (they are shared by all number systems and windows); all else counts them too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.baselines import aggregation as baselines
from benchmarks.cases.events import stream
from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Report, Timing, race
from trendloom.kernels.aggregate import pattern_grained, type_grained
from trendloom.kernels.aggregate.measures import Spans, SpanTotals
from trendloom.kernels.columns.numbers import Doubles, Numbers, Scaled, Wides, integers, zeros

Array = np.ndarray[Any, Any]

SEQUENCE = "RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN {within} s SLIDE {slide} s"
THREE = "RETURN COUNT(*) PATTERN SEQ(A, B, C) WITHIN {within} s SLIDE {slide} s"
RISING = "RETURN COUNT(*) PATTERN S+ SEMANTICS {semantics} WHERE S.price < NEXT(S).price WITHIN 1000 s SLIDE 1000 s"
RUNS = "RETURN COUNT(*) PATTERN SEQ(A+, B) SEMANTICS {semantics} WITHIN 1000 s SLIDE 1000 s"
SYSTEMS: dict[str, type[Numbers]] = {"float": Doubles, "exact": Wides, "log": Scaled}

OVERLAP = 600
ALMOST = 1e-9


def measure_aggregation(report: Report, *, quick: bool = False) -> None:
    """All kernels; `quick` takes a tenth of the events."""
    events, tries = (400_000, 3) if quick else (4_000_000, 7)
    half = {"A": 0.5, "B": 0.5}
    rare = {"A": 50 / events, "B": 1 - 50 / events}
    one_vector(report, "windows of 100 events", planned(_tumbling(100), stream(events, half)), tries)
    one_vector(report, "one window, few A", planned(_tumbling(2 * events), stream(events, rare)), tries)
    for pane in (100, 200, 1_000):
        overlapping(report, pane, events, tries)
    pattern_grains(report, events, tries)
    against_enumeration(report, events // 100, tries)


def _tumbling(within: int) -> str:
    return SEQUENCE.format(within=within, slide=within)


# ---------------------------------------------------------------------------------------------- type-grained


def one_vector(report: Report, name: str, case: Planned, tries: int) -> None:
    """SEQ(A+, B) over windows that do not overlap, in every number system, with and without its preparation."""
    prepared, spans, events = type_grained.Prepared(case.addends), case.spans, len(case.block)
    fits, low, high = case.block.fits[0], spans.low, spans.high
    contenders: dict[str, Callable[[], Any]] = {
        "by hand, float": lambda: baselines.walk(fits, low, high),
        "by hand, exact": lambda: baselines.walk_wide(fits, low, high),
    }
    for system, numbers in SYSTEMS.items():
        contenders[f"{system}, prepared"] = partial(run_type, prepared, spans, numbers)
        contenders[system] = partial(type_grained.add_up, case.addends, spans, zeros(numbers, 1, 1))
    timings = race(tries, contenders, on_processor=True)
    expected = baselines.exact(timings["by hand, exact"].answer)
    rates = {}
    for contender, timing in timings.items():
        good = same_counts(timing.answer, expected)
        one = timing.result(f"type-grained, {name}, {contender}", events, rows=len(spans), checked=good)
        rates[contender] = one.rate
        hand = "by hand, exact" if contender.startswith(("by hand, e", "exact")) else "by hand, float"
        one = one.against(hand, rates[hand])
        if contender == "float, prepared":
            one = one.with_goal("100 M events/s", one.rate >= 1e8)
        if contender == "exact, prepared":
            float_rate = rates["float, prepared"]
            one = one.against("float, prepared", float_rate).with_goal("half of float", one.rate >= float_rate / 2)
        report.add(one)


def run_type(prepared: type_grained.Prepared, spans: Spans, numbers: type[Numbers]) -> SpanTotals:
    return type_grained.run(prepared, spans, zeros(numbers, 1, 1))


def overlapping(report: Report, pane: int, events: int, tries: int) -> None:
    """600 windows over every event against one, the same length; A is rare, so that counts stay below 2^126."""
    within = OVERLAP * pane
    share = 60 / within
    for text, shares in ((SEQUENCE, {"A": share, "B": 1 - share}), (THREE, {"A": 0.3, "B": 0.3, "C": 0.4})):
        table = stream(max(events, 4 * within), shares)
        many = planned(text.format(within=within, slide=pane), table)
        one = planned(text.format(within=within, slide=within), table)
        pattern = "SEQ(A+, B)" if text is SEQUENCE else "SEQ(A, B, C)"
        for system in ("float", "exact"):
            _race_windows(report, f"{pattern}, {pane} events per pane, {system}", many, one, SYSTEMS[system], tries)
    _lanes(
        report, planned(SEQUENCE.format(within=OVERLAP * pane, slide=pane), stream(within, {"A": 0.001, "B": 0.999}))
    )


def _race_windows(report: Report, name: str, many: Planned, one: Planned, numbers: type[Numbers], tries: int) -> None:
    prepared, single = type_grained.Prepared(many.addends), type_grained.Prepared(one.addends)
    timings = race(
        tries,
        {
            "one window": lambda: run_type(single, one.spans, numbers),
            "600 windows": lambda: run_type(prepared, many.spans, numbers),
        },
        on_processor=True,
    )
    events, some = len(many.block), many.spans.take(_sample(len(many.spans)))
    apart = type_grained.run(prepared, some, zeros(numbers, 1, 1), panes=False)
    found = amounts(timings["600 windows"].answer)[_sample(len(many.spans))]
    same_start = np.isin(many.spans.start, one.spans.start)  # windows that do not overlap are some of those that do
    slid_alone = amounts(timings["600 windows"].answer)[same_start]
    good = _close(slid_alone, amounts(timings["one window"].answer))
    base = timings["one window"].result(f"one window, {name}", events, rows=len(one.spans), checked=good)
    report.add(base)
    good = _close(found, amounts(apart))
    slid = timings["600 windows"].result(f"600 windows, {name}", events, rows=len(many.spans), checked=good)
    cost = base.rate / slid.rate
    report.add(slid.against("one window", base.rate).with_goal(f"1.5× its time ({cost:.2f}×)", cost <= 1.5))


def _close(found: Array, expected: Array) -> bool:
    return len(found) == len(expected) and np.allclose(found.astype(float), expected.astype(float), rtol=ALMOST)


def _sample(count: int) -> Array:
    """Some windows, at both ends and in the middle."""
    return np.unique(np.linspace(0, count - 1, 20).astype(np.int64))


def _lanes(report: Report, case: Planned) -> None:
    """What every event costs where each open window is updated on its own."""
    fits, spans = case.block.fits[0], case.spans
    timings = race(1, {"lanes": lambda: baselines.walk_lanes(fits, spans.low, spans.high, OVERLAP)}, on_processor=True)
    found = amounts(run_type(type_grained.Prepared(case.addends), spans, Doubles))
    good = bool(np.allclose(timings["lanes"].answer, found, rtol=ALMOST))
    name = f"600 windows, SEQ(A+, B), by hand with a lane per window, {len(case.block) // OVERLAP} events per pane"
    report.add(timings["lanes"].result(name, len(case.block), rows=len(spans), checked=good))


# ------------------------------------------------------------------------------------------- pattern-grained


def pattern_grains(report: Report, events: int, tries: int) -> None:
    """Runs under next and contiguous, with and without a predicate, in windows of 1000 events."""
    two, three = stream(events, {"A": 0.6, "B": 0.4}), stream(events, {"A": 0.5, "B": 0.3, "C": 0.2})
    prices = stream(events, {"S": 1.0})
    for semantics in ("skip-till-next-match", "contiguous"):
        free = planned(RUNS.format(semantics=semantics), three if semantics == "contiguous" else two)
        _race_runs(report, f"{semantics}, SEQ(A+, B)", free, tries, _runs_by_hand(free))
        tested = planned(RISING.format(semantics=semantics), prices)
        _race_runs(report, f"{semantics}, S+ rising", tested, tries, _rising_by_hand(tested, semantics))


def _runs_by_hand(case: Planned) -> Callable[[], Array]:
    fits, spans = case.block.fits[0], case.spans
    return lambda: baselines.runs(fits, spans.low, spans.high)


def _rising_by_hand(case: Planned, semantics: str) -> Callable[[], Array]:
    price, spans = case.block.columns["price"].values, case.spans
    by_hand = baselines.rising_contiguous if semantics == "contiguous" else baselines.rising_next
    return lambda: by_hand(price, spans.low, spans.high)


def _race_runs(report: Report, name: str, case: Planned, tries: int, by_hand: Callable[[], Array]) -> None:
    grain = type_grained.add_up if case.spec.algebra else pattern_grained.add_up
    contenders: dict[str, Callable[[], Any]] = {"by hand": by_hand}
    for system in ("float", "exact"):
        contenders[system] = partial(grain, case.addends, case.spans, zeros(SYSTEMS[system], 1, 1))
    timings = race(tries, contenders, on_processor=True)
    expected, hand = timings["by hand"].answer.astype(object), 0.0
    for contender, timing in timings.items():
        good = same_counts(timing.answer, expected)
        one = timing.result(f"{name}, {contender}", len(case.block), rows=len(case.spans), checked=good)
        hand = hand or one.rate
        one = one.against("by hand", hand)
        report.add(one if contender == "by hand" else one.with_goal("50 M events/s", one.rate >= 5e7))


# ---------------------------------------------------------------------------------------------- two steps


def against_enumeration(report: Report, events: int, tries: int) -> None:
    """The engine's one step against its two steps, where windows are small enough for the second to end."""
    for within in (8, 12, 16):
        case = planned(SEQUENCE.format(within=within, slide=within), stream(events, {"A": 0.5, "B": 0.5}))
        timings = race(
            min(tries, 3),
            {"two steps": partial(case.partial, two_steps=True), "one step": case.partial},
        )
        rows = len(timings["one step"].answer)
        good = _same_partials(timings["one step"], timings["two steps"])
        rate = 0.0
        for name, timing in timings.items():
            one = timing.result(f"{name}, SEQ(A+, B), windows of {within}", events, rows=rows, checked=good)
            rate = rate or one.rate
            report.add(one.against("two steps", rate))


def _same_partials(one: Timing, other: Timing) -> bool:
    tables = [timing.answer.sort_by(timing.answer.column_names[0]).to_pylist() for timing in (one, other)]
    values = [[[int(v) for v in row.values()] for row in table] for table in tables]
    return values[0] == values[1]


# ------------------------------------------------------------------------------------------------ answers


def amounts(found: SpanTotals) -> Array:
    """The matches of every span: integers, doubles, or of scaled numbers the base-2 logarithm."""
    numbers = found.numbers
    if isinstance(numbers, Doubles):
        return numbers.value[:, 0]
    if isinstance(numbers, Scaled):
        with np.errstate(divide="ignore"):
            return np.log2(numbers.mantissa[:, 0]) + 512.0 * numbers.exponent[:, 0]
    assert not found.spilled.any()
    return integers(numbers, 0)


def same_counts(answer: Any, expected: Array) -> bool:
    """Whether an answer, in whatever number system, is the expected integers."""
    if isinstance(answer, tuple) and not isinstance(answer, SpanTotals):
        return bool((baselines.exact(answer) == expected).all())
    found = amounts(answer) if isinstance(answer, SpanTotals) else answer
    if isinstance(answer, SpanTotals) and isinstance(answer.numbers, Scaled):
        with np.errstate(divide="ignore"):
            return bool(np.allclose(found, np.log2(expected.astype(float)), rtol=ALMOST))
    if found.dtype == np.float64:
        return bool(np.allclose(found, expected.astype(float), rtol=ALMOST))
    return bool((found == expected).all())
