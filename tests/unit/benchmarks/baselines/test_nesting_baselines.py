"""Algorithm 1 of NEEL+, with and without push-in, finds what the definition says: on random streams with ties."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.baselines.nesting import NestedMatches, nested_matches, nested_search
from tests.property.amounts import amount

import trendloom as tl

FLAT = "PATTERN SEQ(A a, B b, (C c: c.x > b.x), (D d: d.x >= 1 AND d.y = a.y)) WITHIN 9"
QUERIES = {
    "one component": "PATTERN SEQ((A a: a.x > 1)) WITHIN 5",
    "flat": FLAT,
    "without a window": FLAT.removesuffix(" WITHIN 9"),
    "the same type twice": "PATTERN SEQ(A a, (A b: b.x < a.x), (A c: c.x <= a.x)) WITHIN 9",
    "a NOT": "PATTERN SEQ(A a, NOT (B b: b.x = a.x), D d) WITHIN 9",
    "two NOTs": "PATTERN SEQ(A a, NOT (B b: b.x = d.x), NOT (C c: c.y = a.y), D d) WITHIN 9",
    "a NOT before all": "PATTERN SEQ(NOT (B b: b.x = d.x), A a, D d) WITHIN 5",
    "a sequence inside": "PATTERN SEQ(A a, SEQ((B b: b.x = d.x), (C c: c.y >= a.y)), D d) WITHIN 9",
    "an inner variable used outside": "PATTERN SEQ(A a, SEQ(B b, C c), (D d: d.x = b.x AND d.y = a.y)) WITHIN 9",
    "a sequence that must not be": "PATTERN SEQ(A a, NOT SEQ((B b: b.x = d.x), (C c: c.y >= b.y)), D d) WITHIN 9",
    "NOT inside NOT": "PATTERN SEQ(A a, NOT SEQ(B b, NOT (A n: n.x = b.x), (C c: c.y = a.y)), D d) WITHIN 9",
    "a NOT at the end of a NOT": "PATTERN SEQ(A a, NOT SEQ((B b: b.x > a.x), NOT (C c: c.y = b.y)), D d) WITHIN 9",
    "SEQ inside NOT": "PATTERN SEQ(A a, NOT SEQ(A n, SEQ((B b: b.x = n.x), (B e: e.y = d.y)), C c), D d) WITHIN 9",
    "NOT inside SEQ": "PATTERN SEQ(A a, SEQ(B b, NOT (A n: n.x = a.x AND n.y = b.y), C c), D d) WITHIN 9",
    "three levels": (
        "PATTERN SEQ(A a, SEQ(B b, SEQ(C c, NOT SEQ((A m: m.x = d.x), (B n: n.y = c.y)), (C e: e.x = a.x)), B f), D d)"
    ),
    "two sequences inside": "PATTERN SEQ(A a, SEQ(B b, C c), B m, SEQ((C e: e.x > a.x), A n), (D d: d.y = c.y))",
}


def stream(seed: int, size: int = 20) -> pa.Table:
    """Events of four types, D at the end more often; some at one time, some values missing, rows in no order."""
    random = np.random.default_rng(seed)
    types = random.choice(list("AABBBCCC"), size)
    types[size // 2 :: 3] = "D"
    order = random.permutation(size)
    x = random.integers(0, 3, size)
    return pa.table(
        {
            "type": types[order],
            "time": random.choice([0, 1, 1, 1, 2], size).cumsum()[order],
            "x": pa.array(x, mask=random.random(size) < 0.1),
            "y": random.choice([0.5, 1.0, 1.5], size),
            "id": np.arange(size),
        }
    )


def by_definition(text: str, table: pa.Table) -> tuple[int, int]:
    rows = tl.run(text, table, engine="reference").to_pylist()
    return len(rows), sum(event["id"] for row in rows for event in row["events"])


def found(text: str, table: pa.Table, *, early: bool) -> NestedMatches:
    return nested_matches(nested_search(text, table, early=early))


@pytest.mark.filterwarnings("ignore:.*same time as another", "ignore:the events have no type")
@pytest.mark.parametrize("name", QUERIES)
def test_both_find_what_the_definition_says(name: str) -> None:
    text, matches = QUERIES[name], 0
    for seed in range(amount(20)):
        table = stream(seed)
        late, early = (found(text, table, early=early) for early in (False, True))
        assert (late.matches, late.checksum) == (early.matches, early.checksum) == by_definition(text, table)
        assert early.built <= late.built
        matches += late.matches
    assert matches > 0


def test_push_in_tries_less() -> None:
    table = pa.table({"type": list("AAAABBBBCCCCD"), "time": range(13), "x": [1] * 12 + [2], "y": [1.0] * 13})
    text = "PATTERN SEQ(A a, B b, (C c: c.x = d.x), D d)"
    late, early = found(text, table, early=False), found(text, table, early=True)
    assert (late.matches, early.matches) == (0, 0)
    assert (late.built, early.built) == (1 + 4 + 16 + 64, 1 + 4)


def test_more_results_than_the_buffers_hold_at_first() -> None:
    count = 60
    types = [*"A" * count, *"B" * count, *"C" * count, "D"]
    table = pa.table({"type": types, "time": range(len(types))})
    flat = found("PATTERN SEQ(A a, B b, C c, D d)", table, early=True)
    nested = found("PATTERN SEQ(A a, SEQ(B b, C c), D d)", table, early=True)
    assert flat.matches == nested.matches == count**3
    assert flat.checksum == nested.checksum


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, NOT B b, SEQ(C c, A e), D d)", "needs events around it"),
        ("PATTERN SEQ(A a, SEQ(B b, C c), SEQ(A e, B f), D d)", "needs events around it"),
        ("PATTERN SEQ(A a, SEQ(B b, C c))", "ends in an event"),
        ("PATTERN SEQ(A a, SEQ(SEQ(B b, C c)), D d)", "an event of its own"),
        ("PATTERN SEQ(A a, SEQ(B b, C c), A m, SEQ((B e: e.x = b.x), C f), D d)", "sees together"),
    ],
)
def test_what_the_algorithm_does_not_cover_is_refused(text: str, why: str) -> None:
    table = pa.table({"type": ["A"], "time": [1], "x": [1]})
    with pytest.raises(ValueError, match=why):
        nested_search(text, table, early=True)
