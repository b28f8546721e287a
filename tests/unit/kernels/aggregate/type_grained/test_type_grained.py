"""The type-grained kernel: panes and windows, words and letters, every number system, against the reference."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.property.amounts import rounds
from tests.unit.kernels.aggregated import SCHEMA, planned, values

import trendloom as tl
from trendloom.kernels.aggregate import type_grained
from trendloom.kernels.aggregate.block import aggregate

PATTERNS = [
    "A+", "SEQ(A+, B)", "(SEQ(A+, B))+", "SEQ(A, B?, C*)", "SEQ(A+, NOT N, B)", "SEQ(NOT N, A+)", "SEQ(A+, NOT N)",
    "SEQ(A+, NOT SEQ(N, C), B)", "SEQ(NOT SEQ(N, C), A, NOT B, A+, NOT N)", "AND(A, B+)", "AND(SEQ(A, B), C)",
    "A{1,3}", "OR(A+, SEQ(B, A))", "SEQ(A+, A+)", "(SEQ(A, NOT N, B))+", "SEQ(AND(A, B), NOT N, C)",
]  # fmt: skip
WINDOWS = ["", "WITHIN 5", "WITHIN 6 SLIDE 2", "WITHIN 5 SLIDE 3", "WITHIN 2 SLIDE 5", "WITHIN 9 SLIDE 1"]
SEMANTICS = ["skip-till-any-match", "skip-till-next-match", "contiguous"]
MEASURES = "COUNT(*), COUNT(A) AS c, SUM(A.x) AS s, MIN(A.x) AS l, MAX(A.f) AS g, SUM(A.f) AS t"


def stream(chance: random.Random) -> list[dict[str, Any]]:
    size = chance.choice([0, 1, 3, 6, 8, 10])
    times = chance.choices(range(chance.choice([3, 8, 20])), k=size)
    return [
        {
            "type": chance.choice("AAABBCN"),
            "time": time - 5,
            "x": chance.choice([None, -2, 0, 1, 5, 2**62]),
            "f": chance.choice([None, -2.5, 0.0, 1.0, 5.5]),
            "k": chance.choice("pq"),
        }
        for time in times
    ]


@pytest.mark.parametrize("panes", [False, True])
@pytest.mark.parametrize("seed", range(rounds(2)))
def test_equals_the_reference(seed: int, panes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With windows one by one and events one by one; with panes wherever there are windows, and words of events."""
    monkeypatch.setattr(type_grained, "_worth_panes", lambda prepared, spans: panes and _slides(prepared))
    monkeypatch.setattr(type_grained, "WORTH_WORDS", 0 if panes else 10**9)
    chance, found = random.Random(seed), 0
    for _ in range(20):
        pattern = chance.choice(PATTERNS)
        semantics = SEMANTICS[0] if "AND" in pattern else chance.choice(SEMANTICS)
        text = f"RETURN k, {MEASURES} PATTERN {pattern} SEMANTICS {semantics} GROUP BY k {chance.choice(WINDOWS)}"
        table = pa.Table.from_pylist(stream(chance), schema=SCHEMA)
        expected = tl.run(text, table, engine="reference").to_pylist()
        assert planned(text).spec.algebra
        rows = tl.run(text, table, engine="local").to_pylist()
        assert [{**row, "t": None} for row in rows] == [{**row, "t": None} for row in expected], text
        assert [row["t"] for row in rows] == pytest.approx([row["t"] for row in expected]), text
        found += len(rows)
    assert found > 3


def _slides(prepared: type_grained.Prepared) -> bool:
    return prepared.addends.spec.pattern_spec.window.slide is not None


@pytest.mark.parametrize("numeric", ["exact", "float", "log"])
@pytest.mark.parametrize("window", ["", "WITHIN 400 SLIDE 100", "WITHIN 50"])
def test_counts_of_any_size(numeric: str, window: str) -> None:
    """A+ over n events at different times has 2^n − 1 matches; n of them in each window here."""
    rows = [{"type": "A", "time": time, "x": 1, "f": 1.0, "k": "p"} for time in range(1000)]
    query = planned(f"RETURN COUNT(*), SUM(A.x) AS s PATTERN A+ {window}")
    block, _, _ = query.block(rows)
    (totals,) = aggregate(query.spec, block, numeric)
    assert len(totals) == {"": 1, "WITHIN 400 SLIDE 100": 13, "WITHIN 50": 20}[window]
    for row, start in enumerate(totals.start.tolist()):
        length = {"": 1000, "WITHIN 50": 50}.get(window) or min(start + 400, 1000) - max(start, 0)
        matches, total = totals.values["matches"], totals.values["sum_0_x"]
        count, occurrences = 2**length - 1, length * 2 ** (length - 1)
        if numeric == "exact":
            assert (int(matches.values[row]), int(total.values[row])) == (count, occurrences)
        else:
            for found, value in ((matches, count), (total, occurrences)):
                assert np.log2(found.values[row]) + found.exponent[row] == pytest.approx(_log2(value))


def _log2(value: int) -> float:
    shift = max(value.bit_length() - 60, 0)
    return float(np.log2(value >> shift)) + shift


def test_ties_are_letters() -> None:
    """Many events at one time, more than letters can count: each enters from before, none follows another."""
    rows = [{"type": "A", "time": time // 300, "x": 1, "f": 1.0, "k": "p"} for time in range(900)]
    query = planned("RETURN COUNT(*) PATTERN A+")
    block, _, _ = query.block(rows)
    (totals,) = aggregate(query.spec, block, "exact")
    assert values(totals, ["p"]) == {("p", 0): [301**3 - 1]}


def test_letters_with_large_coefficients() -> None:
    """200 events of each of four types at one time are one letter, which makes 200⁴ matches of an AND at once."""
    rows = [{"type": "ABCD"[i % 4], "time": i // 800, "x": 1, "f": 1.0, "k": "p"} for i in range(1600)]
    query = planned("RETURN COUNT(*) PATTERN AND(A, B, C, D)")
    assert query.spec.algebra
    block, _, _ = query.block(rows)
    for numeric in ("exact", "log"):
        (totals,) = aggregate(query.spec, block, numeric)
        matches = totals.values["matches"]
        found = matches.values[0] if matches.exponent is None else np.ldexp(matches.values[0], int(matches.exponent[0]))
        assert found == pytest.approx(400**4, rel=1e-12)
