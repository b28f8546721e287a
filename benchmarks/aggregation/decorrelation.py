"""How the time to count matches around a correlated NOT grows with the events, with and without decorrelation.

`SEQ(A a, NOT (B b: b.id = a.id), C c)` and `b.x > c.x` instead, over one window: without the rule the NOT is tested for
every A (or C) by itself, with it the first B in the way of each event is found once, for all. Exponents are slopes of
log-log lines. Answers are compared with a loop by hand, which knows one B for each A, or C.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.harness.planned import planned
from benchmarks.harness.report import Curve, Report, race
from trendloom.optimizer.decorrelate_negations import decorrelate_negations

PICTURE = "counting around a correlated NOT"
SHARES = {"A": 0.4, "B": 0.2, "C": 0.4}
EVENTS_PER_ID = 50


def measure_decorrelation(report: Report, *, quick: bool = False) -> None:
    """Both queries, at sizes that double."""
    sizes = tuple((5_000 if quick else 25_000) << n for n in range(4 if quick else 6))
    tested = tuple((500 if quick else 1_000) << n for n in range(3 if quick else 5))
    for name in QUERIES:
        grow(report, name, sizes, tested, 2 if quick else 3)


def grow(report: Report, name: str, sizes: tuple[int, ...], tested: tuple[int, ...], tries: int) -> None:
    """One query with the rule at `sizes`, without it at the sizes `tested`."""
    for rule, some in (("with the rule", sizes), ("without the rule", tested)):
        seconds = {}
        for size in some:
            events = stream_of_ids(size)
            without = () if rule == "with the rule" else (decorrelate_negations,)
            case = planned(f"RETURN COUNT(*) PATTERN {name}", events, without)
            timing = race(tries, {"": partial(case.partial)})[""]
            counted = timing.answer.column(timing.answer.num_columns - 1)[0].as_py()
            seconds[size] = timing.best
            result = timing.result(f"{name}, {rule}", size, rows=1, checked=int(counted) == QUERIES[name](events))
            if size == some[-1] and rule == "with the rule":
                exponent = Curve(PICTURE, name, some, tuple(seconds.values())).exponent
                result = result.with_goal(f"exponent ≤ 1.2 ({exponent:.2f})", exponent <= 1.2)
            report.add(result)
        report.curves.append(Curve(PICTURE, f"{name}, {rule}", some, tuple(seconds.values())))


def stream_of_ids(count: int, seed: int = 17) -> pa.Table:
    """One event per tick, in order, with an id that some fifty events have, and a value between 0 and 1."""
    random = np.random.default_rng(seed)
    codes = random.choice(len(SHARES), count, p=list(SHARES.values())).astype(np.int32)
    types = pa.DictionaryArray.from_arrays(codes, pa.array(list(SHARES)))
    ids = random.integers(0, max(count // EVENTS_PER_ID, 1), count)
    return pa.table({"type": types, "time": np.arange(count), "id": ids, "x": random.random(count)})


def _by_id(events: pa.Table) -> int:
    """For every A, from the last one on, the Cs before the next B of its id."""
    count, later, until = 0, 0, dict[int, int]()
    for kind, number in zip(reversed(events["type"].to_pylist()), reversed(events["id"].to_pylist()), strict=True):
        if kind == "A":
            count += later - until.get(number, 0)
        elif kind == "B":
            until[number] = later
        else:
            later += 1
    return count


def _by_value(events: pa.Table) -> int:
    """For every C the As after the last B above it; a B that a later one exceeds is never the last."""
    count, earlier = 0, 0
    fallen: list[float] = []  # values of Bs, negated so that they rise, and the As before each
    before: list[int] = []
    for kind, value in zip(events["type"].to_pylist(), events["x"].to_pylist(), strict=True):
        if kind == "A":
            earlier += 1
        elif kind == "B":
            while fallen and -fallen[-1] <= value:
                fallen.pop()
                before.pop()
            fallen.append(-value)
            before.append(earlier)
        else:
            above = bisect_left(fallen, -value)
            count += earlier - (before[above - 1] if above else 0)
    return count


QUERIES: dict[str, Callable[[pa.Table], int]] = {
    "SEQ(A a, NOT (B b: b.id = a.id), C c)": _by_id,
    "SEQ(A a, NOT (B b: b.x > c.x), C c)": _by_value,
}
