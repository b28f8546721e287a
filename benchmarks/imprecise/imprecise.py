"""Matches of imprecise time beside the literature's ways to find them, one core each.

The microbenchmark and the tools are those of `imprecise_streams`; the contenders those of `imprecise_baselines` and
`imprecise_points`. Every answer is compared: the same signatures, the same times, confidences up to rounding. What is
varied: the length of intervals, of the window, of the pattern, and the threshold; components that exclude each other
and such that overlap; skip-till-any-match and skip-till-next-match. Then the search and the confidences by themselves,
growth with the stream, the engine from table to table, expected counts, and Spark.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.baselines.imprecise import by_selectivity, from_any_state, in_order
from benchmarks.baselines.imprecise_confidences import Signatures, enumerated, same_signatures
from benchmarks.baselines.imprecise_points import by_points
from benchmarks.cases.imprecise import (
    EXCLUSIVE,
    OVERLAPPING,
    TOOLS_QUERY,
    WITHIN_OF_TOOLS,
    moves,
    multiples,
    multiples_query,
    tool_moves,
    values_in_turn,
)
from benchmarks.engines.on_spark import run_all
from benchmarks.harness.report import Curve, Report, Result, best_of, race
from benchmarks.imprecise.kernel import Prepared, prepared
from trendloom.kernels.uncertain.confidence.confidence import confidences_of

Array = np.ndarray[Any, Any]

WITHIN, HALF, LENGTH = 100, 10, 3
MOST_HALF_FOR_POINTS = 10
"""Longer intervals are not expanded to points: they would take minutes."""
DENSE = (5, 6, 7, 8)
SAMPLE = 2_000
THRESHOLDS = (0.0, 0.1, 0.5, 0.9, 0.99, 0.999)
BOUNDS = {"time_low": "low", "time_high": "high"}
EXPECTED = "RETURN COUNT(*) AS n  PATTERN SEQ(A a, B b, C c)  WITHIN 60 SLIDE 60"
LISTED = "RETURN a.id  PATTERN SEQ(A a, B b, C c)  WITHIN 60 SLIDE 60"


def measure_imprecise(report: Report, *, quick: bool = False) -> None:
    """All of it; `quick`: shorter streams, fewer lengths."""
    count, tries = (10_000, 2) if quick else (50_000, 5)
    for numbers, kind in ((EXCLUSIVE, "exclusive"), (OVERLAPPING, "overlapping")):
        for half in (1, 10) if quick else (1, 2, 5, 10, 20):
            compare(report, f"{kind}, ± {half}", numbers[:LENGTH], count, tries, half=half)
    for within in (50,) if quick else (10, 50, 200):
        compare(report, f"window {within}", EXCLUSIVE[:LENGTH], count, tries, within=within)
    for length in (2,) if quick else (2, 4, 5, 6):
        compare(report, f"length {length}", EXCLUSIVE[:length], count // 5, tries, half=5)
    for half in (5,) if quick else (1, 5, 10):
        compare(report, f"next, ± {half}", EXCLUSIVE[:LENGTH], count, tries, half=half, following=True)
    measure_selectivity(report, count, tries)
    measure_thresholds(report, count, tries)
    measure_search(report, count, tries)
    measure_confidences(report, 120, tries)
    measure_growth(report, (count, 2 * count, 4 * count), tries)
    measure_tools(report, 30_000 if quick else 300_000, tries)
    measure_engine(report, count if quick else 10 * count, tries)
    measure_expected(report, count // 5, tries)
    measure_spark(report, 30_000 if quick else 300_000, 1 if quick else 3)


def compare(
    report: Report,
    name: str,
    numbers: tuple[int, ...],
    count: int,
    tries: int,
    *,
    half: int = HALF,
    within: int = WITHIN,
    following: bool = False,
) -> None:
    """All contenders on one stream; the kernel beside each of them."""
    events = values_in_turn(count, half)
    stream = multiples(events, numbers)
    case = prepared(multiples_query(numbers, within, any_match=not following), events)
    others: dict[str, Any] = {
        "passes": partial(in_order, stream, within, following=following),
        "by selectivity": partial(in_order, stream, within, by_selectivity(stream), following=following),
        "any state": partial(from_any_state, stream, within, following=following),
    }
    if half <= MOST_HALF_FOR_POINTS and len(numbers) <= LENGTH and within <= WITHIN:
        others["points"] = partial(by_points, stream, within, following=following)
    beside(report, f"imprecise, {name}", count, {"kernel": case.run, **others}, tries)


def beside(report: Report, name: str, count: int, contenders: dict[str, Any], tries: int) -> None:
    """Time contenders whose answers must be equal; the first beside each of the others."""
    mine, *others = contenders
    timings = race(1, {other: contenders[other] for other in others}, on_processor=True)
    best = race(tries, {mine: contenders[mine]}, on_processor=True)[mine]
    for other in others:
        good = same_signatures(best.answer, timings[other].answer)
        rows = len(best.answer.events)
        report.add(timings[other].result(f"{name}, {other}", count, rows=rows, checked=good))
        one = best.result(f"{name}, {mine}", count, rows=rows, checked=good)
        report.add(one.against(other, count / timings[other].best))


def measure_selectivity(report: Report, count: int, tries: int) -> None:
    """Many events that may come first, few that may come last, and the other way round (figure 3.7c)."""
    for numbers in ((5, 37, 499), (499, 37, 5)):
        compare(report, f"one in {', '.join(map(str, numbers))}", numbers, count, tries, half=5)


def measure_thresholds(report: Report, count: int, tries: int) -> None:
    """Less and less should be left to do; the answer is what is left of all matches."""
    events = values_in_turn(count, 2 * HALF)
    case = prepared(multiples_query(EXCLUSIVE[:LENGTH], WITHIN), events)
    contenders = {c: partial(case.run, Fraction(str(c)) if c else None) for c in THRESHOLDS}
    timings = race(tries, {f"{c:g}": work for c, work in contenders.items()}, on_processor=True)
    everything = timings["0"].answer
    before = float("inf")
    for c in THRESHOLDS:
        timing = timings[f"{c:g}"]
        good = same_signatures(timing.answer, everything.at_least(c))
        one = timing.result(f"imprecise, confidence >= {c:g}", count, rows=len(timing.answer.events), checked=good)
        one = one.against("no threshold", count / timings["0"].best)
        if c > THRESHOLDS[1]:  # 5 % for what a busy machine adds
            one = one.with_goal("no slower than the one below", timing.best <= 1.05 * before)
        before = timing.best
        report.add(one)


def measure_search(report: Report, count: int, tries: int) -> None:
    """What a candidate costs, for intervals of ever more points."""
    least = float("inf")
    for half in (1, 5, 10, 25, 50):
        case = prepared(multiples_query(EXCLUSIVE[:LENGTH], WITHIN), values_in_turn(count, half))
        timing = race(tries, {"": case.search}, on_processor=True)[""]
        found = sum(map(len, timing.answer))
        good = found >= len(case.weigh(timing.answer).events) > 0
        each = timing.best / found
        one = timing.result(f"imprecise, search alone, {2 * half + 1} points", count, rows=found, checked=good)
        one = one.noting(f"{each * 1e6:.3g} µs for a candidate")
        if least < float("inf"):
            one = one.with_goal("a candidate costs no more than with 3 points", each <= 1.2 * least)
        least = min(least, each)
        report.add(one)


def measure_confidences(report: Report, count: int, tries: int) -> None:
    """Dynamic programming beside enumeration: 20 points, 4 events, a window that cuts and one that does not."""
    events = values_in_turn(count, HALF)
    events = events.set_column(1, "high", pa.array(events["high"].to_numpy() - 1))  # 20 points
    for within, cuts in ((3 * HALF, True), (2 * count, False)):
        case, stream = prepared(multiples_query(DENSE, within), events), multiples(events, DENSE)
        candidates = _uncertain_ones(case, SAMPLE)
        rows = case.id[candidates.matches.events.reshape(-1, len(DENSE))]
        contenders = {
            "enumeration": partial(enumerated, stream, rows, within),
            "dynamic programming": partial(case.weigh, [candidates]),
        }
        timings = race(tries, contenders, on_processor=True)
        mine, other = timings["dynamic programming"], timings["enumeration"]
        good = same_signatures(mine.answer, other.answer)
        name = f"imprecise, confidences, {'window that cuts' if cuts else 'no window'}"
        report.add(other.result(f"{name}, enumeration", len(rows), rows=len(rows), checked=good))
        one = mine.result(f"{name}, dynamic programming", len(rows), rows=len(rows), checked=good)
        one = one.against("enumeration", len(rows) / other.best)
        report.add(one if cuts else one.with_goal("100× enumeration", (one.ratio or 0) >= 100))


def _uncertain_ones(case: Prepared, most: int) -> Any:
    """Some of the candidates, always the same, whose confidence is below 1."""
    found = max(case.search(), key=len)
    weighed, kept = confidences_of(found, case.block, None)
    places = np.flatnonzero(kept & (weighed.confidence < 1))
    chosen = np.sort(np.random.default_rng(4).permutation(places)[:most])
    return replace(found, matches=found.matches.take(chosen))


def measure_growth(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """Longer and longer streams: the exponent of the time."""
    for following in (False, True):
        seconds = []
        for size in sizes:
            events = values_in_turn(size, 5)
            case = prepared(multiples_query(EXCLUSIVE[:LENGTH], WITHIN, any_match=not following), events)
            stream = multiples(events, EXCLUSIVE[:LENGTH])
            timing = race(tries, {"": case.run}, on_processor=True)[""]
            good = same_signatures(timing.answer, in_order(stream, WITHIN, following=following))
            seconds.append(timing.best)
            name = f"imprecise, growth, {'next' if following else 'any'}, {size:,} events"
            report.add(timing.result(name, size, rows=len(timing.answer.events), checked=good))
        way = "skip-till-next-match" if following else "skip-till-any-match"
        report.curves.append(Curve("imprecise time", way, sizes, tuple(seconds)))


# ------------------------------------------------------------------------------------------------- whole engines


def answer_of(rows: pa.Table) -> Signatures:
    """Rows of a query that returns ids."""
    ids = [rows[name].to_numpy() for name in rows.column_names if name.endswith(".id")]
    return Signatures(
        np.stack(ids, axis=1), *(rows[name].to_numpy() for name in ("confidence", "time_low", "time_high"))
    )


def of_tools(events: pa.Table, found: Any = in_order) -> Signatures:
    stream, ids = moves(events)
    expected: Signatures = found(stream, WITHIN_OF_TOOLS, following=True)
    return expected._replace(events=ids[expected.events])


def of_engine(name: str, query: str, events: pa.Table, expected: Signatures, tries: int) -> Result:
    """The engine from table to table, by the processor time of all its threads."""
    timing = race(tries, {"": partial(tl.run, query, events, **BOUNDS, threads=1)})[""]
    good = same_signatures(answer_of(timing.answer), expected)
    return Result(name, len(events), timing.processor, len(timing.answer), good).noting("processor time")


def measure_tools(report: Report, count: int, tries: int) -> None:
    """The stream of tools under skip-till-next-match: contenders, and the engine from table to table."""
    events = tool_moves(count)
    case = prepared(TOOLS_QUERY, events)
    contenders = {
        "kernel": case.run,
        "passes": partial(of_tools, events),
        "any state": partial(of_tools, events, from_any_state),
    }
    beside(report, "imprecise, tools", count, contenders, tries)
    few = tool_moves(count // 10)
    by_point = {"kernel": prepared(TOOLS_QUERY, few).run, "points": partial(of_tools, few, by_points)}
    beside(report, "imprecise, a tenth of the tools", len(few), by_point, tries)
    one = of_engine("imprecise, tools, engine", TOOLS_QUERY, events, of_tools(events), tries)
    report.add(one.with_goal("80,000 events/s; aim 800,000", one.rate >= 8e4))


def measure_engine(report: Report, count: int, tries: int) -> None:
    """The microbenchmark from table to table, one thread."""
    for numbers, kind in ((EXCLUSIVE, "exclusive"), (OVERLAPPING, "overlapping")):
        events = values_in_turn(count, HALF)
        query = multiples_query(numbers[:LENGTH], WITHIN)
        expected = in_order(multiples(events, numbers[:LENGTH]), WITHIN)
        one = of_engine(f"imprecise, {kind}, engine", query, events, expected, tries)
        report.add(one.with_goal("100,000 events/s", one.rate >= 1e5))


def measure_expected(report: Report, count: int, tries: int) -> None:
    """Expected counts without signatures, beside adding up the confidences of all."""
    random = np.random.default_rng(3)
    time = np.sort(random.integers(0, count, count))
    kinds = pa.array(np.array(["A", "B", "C"])[random.integers(0, 3, count)])
    events = pa.table({"low": time, "high": time + HALF, "type": kinds, "id": np.arange(count)})
    contenders = {
        "listed": partial(tl.run, LISTED, events, **BOUNDS, threads=1),
        "expected": partial(tl.run, EXPECTED, events, **BOUNDS, threads=1),
    }
    timings = race(tries, contenders)
    listed, mine = timings["listed"], timings["expected"]
    summed = listed.answer.group_by("window_start").aggregate([("confidence", "sum")]).sort_by("window_start")
    good = np.allclose(summed["confidence_sum"].to_numpy(), mine.answer.sort_by("window_start")["n"].to_numpy())
    report.add(listed.result("imprecise, counts, listed", count, rows=len(listed.answer), checked=good))
    one = mine.result("imprecise, counts, expected", count, rows=len(mine.answer), checked=good)
    report.add(one.against("listed", count / listed.best))


def measure_spark(report: Report, count: int, tries: int) -> None:
    """The tools on Spark, with one core and with two."""
    from trendloom.spark import detect, session

    events = tool_moves(count)
    expected = of_tools(events)
    first: Result | None = None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.parquet"
        pq.write_table(events, file)
        for cores in (1, 2):
            spark = session(f"local[{cores}]")
            rows = detect(spark.read.parquet(str(file)), TOOLS_QUERY, **BOUNDS, partitions=16)
            good = same_signatures(answer_of(rows.toArrow()), expected)  # starts workers, loads and compiles
            seconds, _ = best_of(tries, partial(run_all, rows))
            spark.stop()
            one = Result(f"imprecise, tools on spark local[{cores}]", count, seconds, len(expected.events), good)
            if first is not None:
                one = one.against("one core", first.rate).with_goal("more than one core", one.rate > first.rate)
            report.add(one)
            first = first or one
