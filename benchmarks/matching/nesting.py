"""Nested sequences over stock trades: Trendloom beside Algorithm 1 of NEEL+, with and without push-in.

The experiments are those of D. Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 6: where
a predicate stands (6.2), how long the window is (6.4), how queries nest (6.6), and what a short cut over the values of
an inner variable is worth by their number (6.8) and depth (6.10). The thesis prints some queries as pictures only;
those here say the same in text. Trades come at the rate of its sample, 4.8 a second, of sixteen tickers: a window of
100 s holds 480 events, 30 of each ticker. Amounts are made up: INTC trades in large amounts, so that
`x.amount > i.amount` holds for a known share of pairs; lots are of ten sizes. Answers are compared by their number and
the sum of the numbers of their events. What decides a comparison: push-in gains what whole bindings cost that one
predicate would have ended, so it gains nothing where the predicate is known last (at d).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import trendloom as tl
from benchmarks.baselines.nesting import NestedMatches, Search, nested_matches, nested_search
from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Report, Timing, race
from trendloom.frontend import tree
from trendloom.frontend.tql.parser import parse_query

TICKERS = (
    "DELL", "MSFT", "IPIX", "INTC", "YHOO", "RIMM", "CSCO", "AMAT",
    "QQQ", "ORCL", "SUNW", "JDSU", "EBAY", "AMZN", "QCOM", "AAPL",
)  # fmt: skip
RATE = 4.8
"""Trades a second in the sample of the thesis."""
SECOND = 1000
"""Times are milliseconds."""
MOST, LOTS = 1000.0, 10
"""Amounts are below this, and lots of so many sizes."""
LARGE, SHARE = "INTC", 0.006
"""The ticker with large amounts, and the share of other trades that are larger still."""

LATE, EARLY, KERNEL, LOCAL = "Algorithm 1", "push-in", "the kernel", "local, end to end"
POSITIONS = {
    "p": "SEQ(DELL d, MSFT s, (IPIX p: p.amount > i.amount), INTC i)",
    "s": "SEQ(DELL d, (MSFT s: s.amount > i.amount), IPIX p, INTC i)",
    "d": "SEQ((DELL d: d.amount > i.amount), MSFT s, IPIX p, INTC i)",
}
"""Fig. 6.2: the nearer to the end, from where a search begins, the sooner a predicate can be tested."""
FLAT = "SEQ(DELL d, MSFT s, (IPIX p: p.amount > i.amount), (INTC i: i.amount > 100))"
"""Fig. 6.4."""
OUTER = "SEQ(DELL d, (QQQ q: q.lot = i.lot), (MSFT s: s.amount > i.amount), {}, INTC i)"
IN_NEGATIVE = "NOT SEQ(IPIX p, SEQ(YHOO y, (RIMM r: r.lot = d.lot)), (CSCO c: c.lot = s.lot))"
TYPES = {
    "positive": OUTER.format("SEQ(IPIX p, (CSCO c: c.lot = d.lot))"),
    "negative": OUTER.format("NOT SEQ(IPIX p, (CSCO c: c.lot = d.lot))"),
    "positive in negative": OUTER.format(IN_NEGATIVE),
}
"""Fig. 6.6."""
WINDOWS = (50, 100, 500)
RATIOS = (0.1, 0.5, 0.8)
DEPTHS = (1, 2, 3)


def measure_nesting(report: Report, *, quick: bool = False) -> None:
    """The experiments of the thesis, on one stream of trades."""
    tries = 2 if quick else 5
    trades = stock_trades(5_000 if quick else 10_000, share=SHARE)
    compare(report, Case("", FLAT, trades.slice(0, 500), 50), 1, silent=True)
    for variable, pattern in POSITIONS.items():
        compare(report, Case(f"predicate at {variable}", pattern, trades, 100), tries)
    for seconds in WINDOWS:
        compare(report, Case(f"flat, {seconds} s", FLAT, trades, seconds), tries, goal=60.0 if seconds == 500 else 0.0)
    for kind, pattern in TYPES.items():
        compare(report, Case(f"nested, {kind}", pattern, trades, 100), tries, goal=7.0)
    for name, pattern, table in short_cut_cases(5_000 if quick else 10_000):
        compare(report, Case(name, pattern, table, 100), tries)


# ------------------------------------------------------------------------------------------------- streams


def stock_trades(count: int, *, share: float, seed: int = 61) -> pa.Table:
    """Trades in order of time: id, time (ms), type (the ticker), amount, lot."""
    random = np.random.default_rng(seed)
    tickers = np.array(TICKERS)[random.integers(0, len(TICKERS), count)]
    # x uniform over all amounts, i over the highest 2 · share of them: P(x > i) = share
    amounts = np.where(tickers == LARGE, MOST * (1 - 2 * share * random.random(count)), MOST * random.random(count))
    return trades_of(random, tickers, amounts.round(3))


def short_cut(
    ratio: float, depth: int, *, levels: int = 3, count: int = 10_000, domain: int = 200, seed: int = 68
) -> tuple[str, pa.Table]:
    """A pattern with `r.amount = i.amount` so deep inside, and trades where RIMM has a share of the amounts of INTC.

    Half of the trades are of tickers that no pattern names, so that deep patterns have a bearable number of bindings.
    """
    random = np.random.default_rng(seed)
    tickers = np.array([*TICKERS, *["OTHER"] * len(TICKERS)])[random.integers(0, 2 * len(TICKERS), count)]
    amounts = random.integers(0, np.where(tickers == "RIMM", max(1, round(ratio * domain)), domain))
    return short_cut_pattern(depth, levels), trades_of(random, tickers, amounts.astype(np.float64))


def short_cut_pattern(depth: int, levels: int = 3) -> str:
    """Sequences inside one another; RIMM ends the one at `depth`."""
    begins, ends = ("MSFT s", "YHOO y", "IPIX p"), ("AMAT a", "QQQ q", "CSCO c")
    inside = ""
    for level in range(levels, 0, -1):
        end = "(RIMM r: r.amount = i.amount)" if level == depth else ends[level - 1]
        inside = f"SEQ({begins[level - 1]}, {inside}{end}), "
    return f"SEQ(DELL d, {inside}INTC i)"


def short_cut_cases(count: int) -> Iterator[tuple[str, str, pa.Table]]:
    """Fig. 6.8 and 6.10: by the share of values and by depth."""
    for ratio in RATIOS:
        yield f"short cut, domain {ratio:.0%}", *short_cut(ratio, 1, levels=1, count=count)
    for depth in DEPTHS:
        yield f"short cut, depth {depth}", *short_cut(0.3, depth, count=count)


def trades_of(random: np.random.Generator, tickers: Any, amounts: Any) -> pa.Table:
    """Trades at the rate of the sample, with these tickers and amounts."""
    lots = random.integers(0, LOTS, len(tickers))
    gaps = 1 + random.exponential(SECOND / RATE - 1, len(tickers)).astype(np.int64)
    columns = {"time": gaps.cumsum(), "type": tickers, "amount": amounts, "lot": lots}
    return pa.table({"id": np.arange(len(tickers))} | columns)


# ------------------------------------------------------------------------------------------------- one comparison


@dataclass(frozen=True)
class Case:
    """A pattern over trades within some seconds."""

    name: str
    pattern: str
    table: pa.Table
    seconds: int

    @property
    def trends(self) -> str:
        return f"PATTERN {self.pattern} WITHIN {self.seconds * SECOND}"

    @property
    def values(self) -> str:
        """One number for each event of a match, the cheapest row that tells matches apart."""
        names = shown_variables(parse_query(self.trends).pattern)
        return f"RETURN {', '.join(f'{name}.id AS {name}' for name in names)} {self.trends}"

    def search(self, *, early: bool) -> Search:
        return nested_search(self.trends, self.table, early=early)


def shown_variables(pattern: tree.Pattern) -> list[str]:
    """The variables of a match: those outside of every NOT."""
    if isinstance(pattern, tree.Event):
        return [pattern.variable or pattern.type]
    return [name for part in pattern.parts for name in shown_variables(part)] if isinstance(pattern, tree.Seq) else []


def compare(report: Report, case: Case, tries: int, goal: float = 0.0, *, silent: bool = False) -> None:
    """Race all contenders. `goal`: how many times the rate of Algorithm 1 the kernel should have."""
    late, early, plan = case.search(early=False), case.search(early=True), planned(case.trends, case.table)
    _ = plan.block
    contenders: dict[str, Callable[[], Any]] = {
        LATE: partial(nested_matches, late),
        EARLY: partial(nested_matches, early),
        KERNEL: partial(_taken, plan),
    }
    timings = race(tries, contenders, warm=False, on_processor=True)
    timings |= race(tries, {LOCAL: partial(_run, case)}, warm=False)
    if not silent:
        _note(report, case, timings, _right(timings, early, plan), goal)


def _right(timings: dict[str, Timing], search: Search, plan: Planned) -> bool:
    """Whether all found the same: the number of matches, and the sum over their events of row numbers, or of times."""
    first: NestedMatches = timings[LATE].answer
    one: NestedMatches = timings[EARLY].answer
    by_time = nested_matches(search._replace(row=search.time))
    return (
        (first.matches, first.checksum) == (one.matches, one.checksum) == _totals(timings[LOCAL].answer)
        and timings[KERNEL].answer == first.matches
        and _times(plan) == by_time.checksum
    )


def _note(report: Report, case: Case, timings: dict[str, Timing], good: bool, goal: float) -> None:
    events, matches = len(case.table), timings[LATE].answer.matches
    for name, timing in timings.items():
        one = timing.result(f"nesting, {case.name}, {name}", events, rows=matches, checked=good)
        if name != LATE:
            one = one.against(LATE, events / timings[LATE].best)
        if isinstance(timing.answer, NestedMatches):
            built = timing.answer.built
            share = f"{matches / built:.2g} of them matches" if built else "no matches"
            one = one.noting(f"{case.seconds * RATE:.0f} events in a window, {built:,} tried, {share}")
        if goal and name == KERNEL:
            one = one.with_goal(f"{goal:g}× {LATE}", bool((one.ratio or 0.0) >= goal))
        report.add(one)


def _run(case: Case) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tl.run(case.values, case.table, engine="local")


def _totals(rows: pa.Table) -> tuple[int, int]:
    return len(rows), sum(int(pc.sum(rows[name]).as_py() or 0) for name in rows.column_names)


def _chunks(plan: Planned) -> Any:
    kernel = plan.physical.kernel
    return kernel.finish(kernel.step(kernel.start(), plan.block, None)[1])


def _taken(plan: Planned) -> int:
    """Take the matches and drop them: how many."""
    return sum(len(chunk.offsets) - 1 for chunk in _chunks(plan))


def _times(plan: Planned) -> int:
    """The times of all events of all matches, added up."""
    return sum(int(plan.block.time[chunk.events].sum()) for chunk in _chunks(plan))
