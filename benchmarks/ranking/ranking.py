"""The k best matches of a sequence beside listing all of them, Yen's algorithm and the thesis's, one core each.

Sensors as in "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", chapter 4: every
epoch has a reading of each of 50 sensors at a time of its own, and readings are of classes with the frequencies of the
thesis (1×, 10× and 89× of 0.003 for the last class of a sequence; those of the other classes are not given, and are
89× here). The score is the sum of the distances of the sensors from a point: the least is
best, and thousands of matches have equal scores, or such that differ by rounding alone. Windows are in epochs.

Contenders: enumerate-all with a bounded list, D-Yen, k-SSP that starts again in each window, k-DSSP, and the kernel;
all answers are compared. Then windows that overlap by nine tenths, and how the kernel's time grows with events.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.baselines.ranking import DIJKSTRA, STRATIFIED, count_matches, enumerate_all, ranked_by_spurs
from benchmarks.harness.report import Curve, Report, race
from trendloom.kernels.ranking.graph import SUM, Strata
from trendloom.kernels.ranking.strata import BestPaths, best_paths, best_spans, order_of, rank_windows

Array = np.ndarray[Any, Any]

SENSORS = 50
BASE = 0.003
SHARES = {"EG": 89 * BASE, "EH": 89 * BASE, "EJ": 89 * BASE, "EI": 0.15, "EO": 10 * BASE, "EN": BASE}
K, WINDOW, STEP, LENGTH = 10, 50, 20, ("EG", "EH", "EJ")
MOST_MATCHES = 3e9
"""Above that, matches are not enumerated."""
MANY_MATCHES = 1e4
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)


def measure_ranking(report: Report, *, quick: bool = False) -> None:
    """The thesis's setting and what it varies, then slides, growth and rates."""
    epochs, tries = (150, 3) if quick else (450, 5)
    compare(report, "as in the thesis", readings(epochs), tries=tries, goal=1000.0)
    for k in (20, 40):
        compare(report, f"k = {k}", readings(epochs), k=k, tries=tries)
    for window in (25, 100):
        compare(report, f"window {window}", readings(epochs), window=window, tries=tries)
    for step in (5, 10, 50):
        compare(report, f"step {step}", readings(epochs), step=step, tries=tries)
    for classes in (LENGTH[:2], (*LENGTH, "EI")):
        compare(report, f"length {len(classes)}", readings(epochs, classes), tries=tries)
    for last, times in (("EN", 1), ("EO", 10)):
        compare(report, f"last class {times}×", readings(epochs, (*LENGTH[:2], last)), tries=tries)
    for distances in (True, False):
        measure_slides(report, epochs, tries, distances=distances)
    measure_growth_of_window(report, SIZES[:3] if quick else SIZES, tries)
    measure_keys(report, 500_000 if quick else 5_000_000, tries)


def readings(epochs: int, classes: tuple[str, ...] = LENGTH, seed: int = 42, *, distances: bool = True) -> Strata:
    """One key: readings at times of their own, `SENSORS` to an epoch; weights are distances, or random doubles."""
    random = np.random.default_rng(seed)
    count = epochs * SENSORS
    sensor = np.argsort(random.random((epochs, SENSORS)), axis=1).ravel()
    distance = np.sqrt((random.random((SENSORS, 2)) ** 2).sum(axis=1)) * 40
    names = list(SHARES)
    shares = np.array([*SHARES.values(), 1.0 - sum(SHARES.values())])
    kind = random.choice(len(shares), count, p=shares)
    weight = distance[sensor] if distances else random.random(count)
    return strata_of([np.flatnonzero(kind == names.index(name)) for name in classes], weight)


def strata_of(members: list[Array], weight: Array) -> Strata:
    """Events that all have times of their own."""
    begin = np.cumsum([0, *map(len, members)]).astype(np.int64)
    event = np.concatenate(members).astype(np.int32)
    return Strata(begin, event, weight[event], np.arange(1, len(weight) + 1))


def windows(events: int, window: int, step: int) -> tuple[Array, Array]:
    """The full windows of a stream, in epochs."""
    low = np.arange(0, events - window * SENSORS + 1, step * SENSORS)
    return low, low + window * SENSORS


def table_of(found: Any, k: int) -> Array:
    """A row of k scores per window, NaN where there are fewer."""
    if not isinstance(found, BestPaths):
        return np.asarray(found)
    rows = np.full((len(found.more), k), np.nan)
    sizes = np.diff(found.offsets)
    rows[np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])] = found.scores
    return rows


def best_again(strata: Strata, low: Array, high: Array, k: int) -> BestPaths:
    """The kernel with nothing taken from the windows before."""
    return BestPaths(*rank_windows(strata, low, high, order_of(strata, k, SUM), np.empty(0, strata.weight.dtype)))


def compare(
    report: Report,
    name: str,
    strata: Strata,
    *,
    k: int = K,
    window: int = WINDOW,
    step: int = STEP,
    tries: int,
    goal: float | None = None,
) -> None:
    """All contenders on one stream; the kernel beside each of them."""  # fmt: skip
    low, high = windows(len(strata.tie_end), window, step)
    events, matches = int((high - low).sum()), count_matches(strata, low, high)
    inputs = (strata, low, high, k)
    contenders = {
        "D-Yen": partial(ranked_by_spurs, *inputs, DIJKSTRA, dynamic=True),
        "k-SSP again": partial(ranked_by_spurs, *inputs, STRATIFIED, dynamic=False),
        "k-DSSP": partial(ranked_by_spurs, *inputs, STRATIFIED, dynamic=True),
    }
    if matches <= MOST_MATCHES:
        contenders = {"enumerate all": partial(enumerate_all, *inputs), **contenders}
    for contender in contenders.values():  # compile
        contender.func(strata, low[:1], low[:1] + SENSORS, *contender.args[3:], **contender.keywords)
    timings = race(1, contenders, on_processor=True, warm=False)
    mine = race(tries, {"": partial(best_paths, *inputs, SUM)}, on_processor=True)[""]
    expected = table_of(mine.answer, k)
    note = f"{matches / len(low):.3g} matches in each of {len(low)} windows"
    for contender, timing in timings.items():
        good = np.array_equal(timing.answer, expected, equal_nan=True)
        report.add(timing.result(f"ranking, {name}, {contender}", events, rows=len(low) * k, checked=good).noting(note))
        one = mine.result(f"ranking, {name}, kernel", events, rows=len(low) * k, checked=good)
        one = one.against(contender, events / timing.best)
        wanted = {"enumerate all": goal, "D-Yen": 100.0 if matches / len(low) >= MANY_MATCHES else None}.get(contender)
        if wanted is not None:
            one = one.with_goal(f"{wanted:g}× {contender}", (one.ratio or 0.0) >= wanted)
        report.add(one)


def measure_slides(report: Report, epochs: int, tries: int, *, distances: bool) -> None:
    """Windows that overlap by nine tenths, and by more, beside starting again in each."""
    name = "distances" if distances else "random doubles"
    for step in (5, 1):
        strata = readings(epochs, distances=distances)
        low, high = windows(len(strata.tie_end), WINDOW, step)
        inputs, events = (strata, low, high, K), int((high - low).sum())
        contenders = {
            "k-SSP again": partial(ranked_by_spurs, *inputs, STRATIFIED, dynamic=False),
            "k-DSSP": partial(ranked_by_spurs, *inputs, STRATIFIED, dynamic=True),
            "kernel again": partial(best_again, *inputs),
            "kernel": partial(best_paths, *inputs, SUM),
        }
        timings = race(tries, contenders, on_processor=True)
        for contender, timing in timings.items():
            good = np.array_equal(table_of(timing.answer, K), timings["k-SSP again"].answer, equal_nan=True)
            title = f"slides, {name}, step {step} of {WINDOW}, {contender}"
            one = timing.result(title, events, rows=len(low) * K, checked=good)
            if contender != "k-SSP again":
                one = one.against("k-SSP again", events / timings["k-SSP again"].best)
            if contender == "kernel":
                one = one.with_goal("5× starting again", (one.ratio or 0.0) >= 5.0)
            report.add(one)


def measure_growth_of_window(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """One window of more and more events, and the exponent of the time; the spans of the same events."""
    seconds: dict[str, list[float]] = {"windows": [], "spans": []}
    for size in sizes:
        random = np.random.default_rng(7)
        kind, starts = random.integers(0, 3, size), np.array([0, size])
        strata = strata_of([np.flatnonzero(kind == t) for t in range(3)], random.random(size))
        horizon = np.minimum(np.arange(size) + 1_000, size)
        again = partial(ranked_by_spurs, strata, starts[:1], starts[1:], K, STRATIFIED, dynamic=False)
        contenders = {
            "k-SSP": again,
            "windows": partial(best_paths, strata, starts[:1], starts[1:], K, SUM),
            "spans": partial(best_spans, strata, starts, horizon, K, SUM),
        }
        timings = race(tries, contenders, on_processor=True)
        good = np.array_equal(timings["k-SSP"].answer, table_of(timings["windows"].answer, K), equal_nan=True)
        one = timings["windows"].result(f"ranking, a window of {size:,} events", size, rows=K, checked=good)
        one = one.against("k-SSP", size / timings["k-SSP"].best)
        report.add(one.with_goal("1 s", one.seconds < 1.0) if size == SIZES[-1] else one)
        for name, some in seconds.items():
            some.append(timings[name].best)
    for name, some in seconds.items():
        report.curves.append(Curve("ranked sequences", name, sizes, tuple(some)))


def measure_keys(report: Report, count: int, tries: int, keys: int = 1_000) -> None:
    """Many keys, each one window."""
    random = np.random.default_rng(8)
    kind, starts = random.integers(0, 3, count), np.linspace(0, count, keys + 1).astype(np.int64)
    strata = strata_of([np.flatnonzero(kind == t) for t in range(3)], random.random(count))
    inputs = (strata, starts[:-1], starts[1:], K)
    again = partial(ranked_by_spurs, *inputs, STRATIFIED, dynamic=False)
    timings = race(tries, {"k-SSP": again, "kernel": partial(best_paths, *inputs, SUM)}, on_processor=True)
    good = np.array_equal(timings["k-SSP"].answer, table_of(timings["kernel"].answer, K), equal_nan=True)
    one = timings["kernel"].result(f"ranking, {keys:,} keys", count, rows=keys * K, checked=good)
    one = one.against("k-SSP", count / timings["k-SSP"].best)
    report.add(one.with_goal("0.5 s for 5 M events", one.rate >= 10e6))
