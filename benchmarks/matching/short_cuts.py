"""What it is worth to know beforehand that a value occurs nowhere inside: the rule `short_cut_predicates` on and off.

Sequences of trades inside one another, of which an inner one must have the amount of the first: by the share of the
outer amounts that occur inside (fig. 6.8 of D. Zhang, "NEEL+: Supporting Predicates for Nested Complex Event
Processing"), and by the depth at which the inner one stands (fig. 6.10). The thesis searches backwards from the last
event, Trendloom forwards from the first, so the outer variable comes first here. An optional component keeps the
sequences from being bound in any other order, in which the equality would come first and nothing is left to cut short.
Both sides look events up by value and decide predicates early; they differ in the short cut alone. Where all values
occur inside, the rule is not chosen, and the run with it should take no longer.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Report, race
from benchmarks.matching.nesting import RATE, SECOND, trades_of
from trendloom.optimizer.short_cut_predicates import short_cut_predicates

DOMAIN = 1000
DENSE = 4
"""Amounts of which a window holds all."""
RATIOS = (0.1, 0.5, 0.8, 1.0)
DEPTHS = (1, 2, 3)
NAMED = ("INTC", "DELL", "MSFT", "YHOO", "IPIX", "RIMM", "CSCO")
SECONDS = 30


def measure_short_cuts(report: Report, *, quick: bool = False) -> None:
    """By the share of values, by depth, and inside NOT."""
    count, tries = (4_000, 3) if quick else (10_000, 7)
    for ratio in RATIOS:
        goal = 4.0 if ratio == 0.1 else None
        compare(report, f"domain {ratio:.0%}", pattern_of(2), trades(count, ratio), tries, goal)
    compare(report, "all values in every window", pattern_of(1), trades(count, 1.0, DENSE), tries, 0.95)
    for depth in DEPTHS:
        compare(report, f"depth {depth}, domain 10%", pattern_of(depth), trades(count, 0.1), tries)
    for depth in DEPTHS:
        negated = pattern_of(depth, inside="NOT ")
        compare(report, f"NOT, depth {depth}, domain 10%", negated, trades(count, 0.1), tries)


def pattern_of(depth: int, inside: str = "") -> str:
    """Sequences inside one another; RIMM ends the one at `depth` and must have the amount of INTC."""
    nested = "(RIMM r: r.amount = i.amount)"
    for begin in reversed(["DELL d", "MSFT s", "YHOO y"][:depth]):
        nested = f"SEQ({begin}, {nested})"
    last = ", IPIX p" if inside else ""
    return f"SEQ(INTC i, CSCO c?, {inside}{nested}{last})"


def trades(count: int, ratio: float, domain: int = DOMAIN, seed: int = 610) -> pa.Table:
    """Trades of the tickers of all patterns, of which RIMM has a share of the amounts of the others."""
    random = np.random.default_rng(seed)
    tickers = np.array(NAMED)[random.integers(0, len(NAMED), count)]
    amounts = random.integers(0, np.where(tickers == "RIMM", max(1, round(ratio * domain)), domain))
    return trades_of(random, tickers, amounts)


def compare(report: Report, name: str, pattern: str, table: pa.Table, tries: int, goal: float | None = None) -> None:
    """The kernel with and without the rule; the answers are compared."""
    query = f"RETURN i.id PATTERN {pattern} WITHIN {SECONDS * SECOND}"
    without, with_rule = (planned(query, table, rules) for rules in ((short_cut_predicates,), ()))
    cut = any(one.short_cut for one in with_rule.physical.plan.conditions)
    contenders = {"without": partial(matches, without), "with": partial(matches, with_rule)}
    timings = race(tries, contenders, on_processor=True)
    good = timings["with"].answer == timings["without"].answer
    events, rows = len(table), timings["with"].answer
    report.add(timings["without"].result(f"short cut, {name}, rule off", events, rows=rows, checked=good))
    one = timings["with"].result(f"short cut, {name}, rule on", events, rows=rows, checked=good)
    one = one.against("rule off", events / timings["without"].best)
    one = one.noting(f"{'cut short' if cut else 'not chosen'}, {SECONDS * RATE:.0f} events in a window")
    if goal is not None:
        one = one.with_goal(f"{goal:g}× rule off", bool((one.ratio or 0.0) >= goal))
    report.add(one)


def matches(plan: Planned) -> int:
    """Find all matches of a plan: how many."""
    kernel = plan.physical.kernel
    return sum(len(chunk) for chunk in kernel.finish(kernel.step(kernel.start(), plan.block, None)[1]))
