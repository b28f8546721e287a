"""Queries that two checkouts of the project are compared by: together they run every kernel.

A case is data: a query or a workload, how many events of the common stream it takes, and options of `tl.run`. All
checkouts must accept all of them, so they use what the language has had for long.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from benchmarks.cases.counts import in_one_text, plain_queries

SLIDING = "WITHIN 10 minutes SLIDE 1 minute"
ANY = "SEQ(A a, B b, C c) WHERE [key]"
RUN = "SEQ(A a, B+ b[], C c)"
NEXT = "SEMANTICS skip-till-next-match"
KEYS = 20


@dataclass(frozen=True)
class ComparedCase:
    """A text to run over the first `share` of the events; `options` go to `tl.run`."""

    text: str
    share: float = 1.0
    options: dict[str, str] = field(default_factory=dict)


QUERIES = {
    "rows, any": ComparedCase(f"RETURN a.id, b.id, c.id PATTERN {ANY} AND a.price < c.price WITHIN 1 minute"),
    "rows, next": ComparedCase(f"RETURN a.id, count(b[]), c.id PATTERN {RUN} {NEXT} WHERE [key] WITHIN 1 minute"),
    "rows, contiguous": ComparedCase(
        f"RETURN a.id, count(b[]) AS n PATTERN {RUN} SEMANTICS contiguous "
        "WHERE [key] AND b.price < NEXT(b).price WITHIN 1 hour"
    ),
    "rows, NOT": ComparedCase("RETURN a.id, b.id PATTERN SEQ(A a, NOT C c, B b) WHERE [key] WITHIN 1 minute"),
    "rows, Kleene with NEXT": ComparedCase(
        f"RETURN a.id, count(b[]), c.id PATTERN {RUN} WHERE [key] AND b.price < NEXT(b).price WITHIN 1 minute"
    ),
    "COUNT(*), sliding": ComparedCase(
        f"RETURN key, COUNT(*) PATTERN SEQ(A a+, B b) WHERE [key] GROUP BY key {SLIDING}"
    ),
    "SUM, AVG with NEXT, sliding": ComparedCase(
        "RETURN key, COUNT(*), SUM(b.id), AVG(b.id) PATTERN SEQ(A a, B b+) WHERE [key] AND b.price < NEXT(b).price "
        f"GROUP BY key {SLIDING}",
        0.5,
    ),
    "COUNT(*), pattern-grained": ComparedCase(
        f"RETURN key, COUNT(*) PATTERN SEQ(A a, B b+, C c) {NEXT} WHERE [key] AND b.price < NEXT(b).price "
        f"GROUP BY key {SLIDING}"
    ),
    "COMPLETE TRENDS": ComparedCase(
        "RETURN COMPLETE TRENDS PATTERN B b+ WHERE [key] AND b.price < NEXT(b).price WITHIN 5 minutes SLIDE 5 minutes",
        0.5,
    ),
    "COLLAPSED TRENDS": ComparedCase(f"RETURN COLLAPSED TRENDS PATTERN {RUN} WHERE [key] WITHIN 1 minute", 0.05),
    "RANK BY": ComparedCase(
        f"RETURN a.id, b.id, c.id PATTERN {ANY} {SLIDING} RANK BY a.price + b.price + c.price DESC LIMIT 10", 0.5
    ),
    "RANK BY MERGE": ComparedCase(
        "PATTERN AND(SEQ(A a, B b), SEQ(C c, B d)) WHERE [key] WITHIN 1 minute SLIDE 1 minute "
        "RANK BY MERGE(sum, a.price + b.price, c.price + d.price) DESC LIMIT 5",
        0.02,
    ),
    "nested NOT, EXISTS": ComparedCase(
        "RETURN a.id, b.id PATTERN EXISTS c (SEQ(A a, NOT SEQ(C x, A y), B b, C c)) WHERE [key] WITHIN 1 minute", 0.5
    ),
    "imprecise time": ComparedCase(
        f"RETURN a.id, b.id, c.id PATTERN {ANY} WITHIN 1 minute",
        0.05,
        {"time_low": "low", "time_high": "high"},
    ),
    "imprecise time, next": ComparedCase(
        f"RETURN a.id, b.id, c.id PATTERN {ANY} AND b.price < 10 {NEXT} WITHIN 1 minute",
        0.05,
        {"time_low": "low", "time_high": "high"},
    ),
}
WORKLOADS = {
    "30 shared counts": ComparedCase(
        in_one_text(
            {
                f"q{n}": f"RETURN key, COUNT(*) PATTERN SEQ(A a+, {'BC'[n % 2]} b, {'CB'[n % 2]} c) WHERE [key] "
                f"GROUP BY key WITHIN {1 + n // 6} minutes SLIDE 1 minute"
                for n in range(30)
            }
        ),
        0.5,
    ),
    "10 mixed queries": ComparedCase(
        in_one_text(
            plain_queries(5)
            | {
                name: QUERIES[kind].text
                for name, kind in {
                    "r1": "rows, any",
                    "r2": "rows, next",
                    "r3": "rows, NOT",
                    "c1": "SUM, AVG with NEXT, sliding",
                    "t1": "COMPLETE TRENDS",
                }.items()
            }
        ),
        0.25,
    ),
}
LOCAL = {**QUERIES, **WORKLOADS}
SPARK = {name: QUERIES[name] for name in ("rows, next", "COUNT(*), sliding", "COMPLETE TRENDS", "RANK BY")}


def compared_events(count: int, seed: int = 3) -> pa.Table:
    """Two events of types A, B and C per second, some of one key at one time, each known to within two seconds."""
    random = np.random.default_rng(seed)
    time = np.arange(count) // 2
    return pa.table(
        {
            "id": np.arange(count),
            "time": time,
            "type": pa.array(np.array(["A", "B", "C"])[random.integers(0, 3, count)]),
            "key": random.integers(0, KEYS, count),
            "price": random.integers(0, 10_000, count) / 100,
            "low": time - 2,
            "high": time + 2,
        }
    )
