"""Streams whose matches nobody can enumerate: the local engine equals a dynamic program over Python integers.

The dynamic program is itself held to the reference, on random queries over tiny streams and on every family below cut
down to a few events. Exact counts are compared digit by digit, logarithms with the logarithms of the exact counts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.property.amounts import MORE, amount
from tests.property.dynamic import Answers, Tally, answers
from tests.property.dynamic_queries import (
    ANY,
    CONTIGUOUS,
    NEXT,
    OPERATORS,
    Adjacent,
    Compare,
    Either,
    Event,
    Local,
    Maybe,
    Not,
    One,
    Pattern,
    Plus,
    Query,
    Seq,
    template_of,
)
from tests.property.strategies import Row, to_table

import trendloom as tl
from trendloom.kernels.jit.interpreted import interpreted_only

EXAMPLES = amount(50)
EXACT_FIELDS = ("matches", "occurrences", "values", "total", "least", "greatest")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# -------------------------------------------------------------------------------------------------- comparing


def integer(value: Any) -> int | None:
    """An exact result as a Python integer; texts longer than `int` reads at once are read in pieces."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        assert value == value.to_integral_value()
        return int(value)
    assert isinstance(value, str)
    digits, found = value.removeprefix("-"), 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        found = found * 10 ** len(piece) + int(piece)
    return -found if value.startswith("-") else found


def rows_by_cell(query: Query, table: pa.Table) -> dict[tuple[Any, int | None], Row]:
    """The rows by group and window, as `Answers` are; each comes once."""
    found: dict[tuple[Any, int | None], Row] = {}
    for row in table.to_pylist():
        key = row[query.key] if query.key is not None and query.grouped else None
        start = row["window_start"] if query.within is not None else None
        assert (key, start) not in found
        found[key, start] = row
        assert start is None or row["window_end"] == start + query.within
    return found


def wrong(query: Query, table: pa.Table, expected: Answers, check: Callable[[Row, Tally], Iterator[str]]) -> list[str]:
    """What differs, in words: the numbers themselves have thousands of digits."""
    found = rows_by_cell(query, table)
    if found.keys() != expected.keys():
        missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
        return [f"{len(missing)} rows are missing, {len(extra)} are too many: {[*missing, *extra][:5]}"]
    return [f"{cell}: {fault}" for cell, tally in expected.items() for fault in check(found[cell], tally)]


def exactly(row: Row, tally: Tally) -> Iterator[str]:
    for name in EXACT_FIELDS:
        found, expected = integer(row[name]), nullable(tally, name)
        if found != expected:
            yield f"{name} is {size(found)}, not {size(expected)}"
    yield from mean(row, tally)


def in_logarithms(row: Row, tally: Tally) -> Iterator[str]:
    """Every step of a sum of n terms may lose half a unit of the last of 53 bits, so logarithms are near as well."""
    for name in ("matches", "occurrences", "values", "total"):
        number = nullable(tally, name)
        expected = math.log10(number) if number else None
        if not near(row[name], expected, absolute=1e-8):
            yield f"log10 of {name} is {row[name]}, not {expected}"
    for name in ("least", "greatest"):
        if row[name] != getattr(tally, name):
            yield f"{name} is {row[name]}, not {getattr(tally, name)}"
    yield from mean(row, tally)


def in_doubles(row: Row, tally: Tally) -> Iterator[str]:
    for name in EXACT_FIELDS:
        expected = double(nullable(tally, name))
        if not near(row[name], expected, relative=1e-9):
            yield f"{name} is {row[name]}, not {expected}"
    yield from mean(row, tally)


def double(number: int | None) -> float | None:
    try:
        return None if number is None else float(number)
    except OverflowError:
        return math.inf if number is not None and number > 0 else -math.inf


def mean(row: Row, tally: Tally) -> Iterator[str]:
    expected = tally.total / tally.values if tally.values else None
    if not near(row["mean"], expected, relative=1e-9):
        yield f"mean is {row['mean']}, not {expected}"


def nullable(tally: Tally, name: str) -> int | None:
    """A sum of no values is NULL."""
    number: int | None = getattr(tally, name)
    return None if name == "total" and not tally.values else number


def near(found: float | None, expected: float | None, *, relative: float = 0.0, absolute: float = 0.0) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=relative, abs_tol=absolute or relative)


def size(number: int | None) -> str:
    if number is None or abs(number) < 10**20:
        return str(number)
    return f"{'-' if number < 0 else ''}10^{math.log10(abs(number)):.9f}"


# ---------------------------------------------------------------------------------- the oracle is right: random queries


def random_pattern(draw: random.Random, depth: int) -> Pattern:
    """Events of a type share its variable, but a NOT has a name, so that conditions leave it alone."""
    shapes = (
        ["one", "one", "plus"] if depth == 0 else ["plus", "seq", "seq", "seq", "either", "maybe", "rounds", "rounds"]
    )
    shape = draw.choice(shapes)
    if shape == "either":
        return Either((random_pattern(draw, depth - 1), random_pattern(draw, depth - 1)))
    if shape == "rounds":
        return Plus(random_pattern(draw, depth - 1))
    if shape == "seq":
        parts = [random_pattern(draw, depth - 1) for _ in range(draw.choice([1, 2, 2, 2, 3]))]
        for _ in range(draw.choice([0, 0, 1, 1, 1, 2])):
            parts.insert(draw.randint(0, len(parts)), Not(draw.choice("ABCCDD"), f"n{draw.getrandbits(40)}"))
        return Seq(tuple(parts))
    atom = One(draw.choice("AAB"))
    return atom if shape == "one" else Plus(atom) if shape == "plus" else Maybe(Plus(atom))


def random_query(draw: random.Random, scale: int = 1) -> Query:
    """`scale` widens the windows, for streams that are longer than a few events."""
    pattern = random_pattern(draw, draw.choice([1, 1, 1, 2]))
    bound = sorted({atom.type for atom in template_of(pattern).atoms.values()})
    within = draw.choice([None, None, None, 1, 3, 5, 8])
    return Query(
        pattern,
        draw.choice([ANY, ANY, NEXT, NEXT, CONTIGUOUS]),
        tuple(random_test(draw, bound) for _ in range(draw.choice([0, 0, 1, 1, 2]))),
        tuple(positive(name) for name in bound if draw.random() < 0.1),
        draw.choice([None, None, None, "k", "g"]),
        draw.random() < 0.7,
        within and within * scale,
        draw.choice([None, scale, 2 * scale, 3 * scale - 1, 9 * scale]) if within else None,
        draw.choice(bound),
    )


def random_test(draw: random.Random, bound: list[str]) -> Compare | Adjacent:
    first = draw.choice(bound)
    if draw.random() < 0.1:
        return Adjacent(first, first, f"abs({first}.x - NEXT({first}).x) < 2", closest)
    left = draw.choice("xxk")
    right = left if draw.random() < 0.7 else draw.choice("xk")
    return Compare(first, left, draw.choice([*OPERATORS, "="]), draw.choice(bound), right)


def closest(before: Event, after: Event) -> bool:
    return None not in (before["x"], after["x"]) and abs(before["x"] - after["x"]) < 2


def positive(of: str) -> Local:
    return Local(of, f"{of}.x > 0", lambda event: event["x"] is not None and event["x"] > 0)


def random_stream(draw: random.Random, events: int) -> list[Row]:
    """With ties, NULLs, and types that the pattern does not know; rows in no order."""
    return [
        {
            "id": number,
            "type": draw.choice("AAAAABBBCD"),
            "time": draw.randint(-2, events),
            "x": draw.choice([None, None, *range(max(4, events // 20))]),
            "k": draw.choice([None, None, 1, 1, 1, 2]),
            "g": draw.choice(["u", "u", "v"]),
        }
        for number in range(events)
    ]


def random_cases(count: int, scale: int, lengths: Sequence[int]) -> Iterator[tuple[Query, list[Row], Answers]]:
    """Queries with streams and what the oracle says; the same in every run, unless more are asked for."""
    start = random.randrange(10**9) if MORE else 0
    for seed in range(start, start + count):
        draw = random.Random(seed)
        query, stream = random_query(draw, scale), random_stream(draw, draw.choice(lengths))
        try:
            expected = answers(query, stream)
        except ValueError:  # NOTs that the oracle does not know
            continue
        yield query, stream, expected


def test_the_oracle_equals_the_reference() -> None:
    """Not drawn by hypothesis, which prefers simple values: most cases should have matches, ties and conditions."""
    compared, with_rows = 0, 0
    for query, stream, expected in random_cases(EXAMPLES, 1, [6, 7, 8, 9]):
        assert answers(query, stream, scan=True) == expected
        found = tl.run(query.text, to_table(stream), engine="reference")
        assert not wrong(query, found, expected, exactly), f"{query.text}\n{stream}"
        compared += 1
        with_rows += bool(expected)
    assert compared >= 0.9 * EXAMPLES
    assert with_rows >= 0.6 * compared


A, B, N = One("A"), One("B"), Not("N")
ROUNDS = Plus(Seq((Plus(A), B)))


@pytest.mark.parametrize(
    ("pattern", "semantics", "stream", "matches"),
    [
        (ROUNDS, ANY, "a1 b2 a3 a4 c5 b6 a7 b8", 43),
        (ROUNDS, NEXT, "a1 b2 a3 a4 c5 b6 a7 b8", 8),
        (ROUNDS, CONTIGUOUS, "a1 b2 a3 a4 c5 b6 a7 b8", 2),
        (Seq((Plus(A), Not("E"))), ANY, "a1 b2 c2 a3 e3 a4 c5 d6 b7 a8 b9", 14),
        (Seq((Not("E"), Plus(A))), ANY, "a1 b2 c2 a3 e3 a4 c5 d6 b7 a8 b9", 12),
    ],
    ids=str,
)
def test_the_oracle_knows_published_figures(pattern: Pattern, semantics: str, stream: str, matches: int) -> None:
    events = [{"type": word[0].upper(), "time": int(word[1:]), "x": 1} for word in stream.split()]
    assert answers(Query(pattern, semantics), events)[None, None].matches == matches


# --------------------------------------------------------------------------------------------------- large streams


@dataclass(frozen=True)
class Family:
    """A query and the kind of stream it meets. `types` are drawn as often as they are written."""

    query: Query
    events: int
    types: str = "A"
    keys: int = 1
    low: int = 0  # the least x; a negative sum has no logarithm
    high: int = 1000  # the greatest
    gap: float = 1.0  # between events, on average: ties below, few of them above

    def stream(self, events: int) -> list[Row]:
        """Seeded, so that every run sees the same; rows in no order."""
        draw = random.Random(self.query.text)
        span = int(events * self.gap)
        return [
            {
                "id": number,
                "type": draw.choice(self.types),
                "time": draw.randint(-span // 3, span),
                "x": None if draw.random() < 0.02 else draw.randint(self.low, self.high),
                "k": draw.randrange(self.keys),
            }
            for number in range(events)
        ]


RISES, FALLS = Compare("A", "x", "<", "A", "x"), Compare("A", "x", ">=", "A", "x")
SAME, LOWER = Compare("A", "k", "=", "A", "k"), Compare("A", "k", ">", "A", "k")

SYSTEMS = ("exact", "float", "log")
FAMILIES = {
    "A+": Family(Query(Plus(A)), 100_000, "AAB"),
    "A+, sums of both signs": Family(Query(Plus(A)), 20_000, "AAB", low=-1000),
    "SEQ(A+, B)": Family(Query(Seq((Plus(A), B))), 30_000, "AAAB"),
    "(SEQ(A+, B))+": Family(Query(ROUNDS), 30_000, "AABC"),
    "(SEQ(A+, B))+ of B": Family(Query(ROUNDS, of="B"), 10_000, "AABC"),
    "inner NOT": Family(Query(Seq((Plus(A), N, B))), 20_000, "A" * 40 + "B" * 9 + "N"),
    "leading NOT": Family(Query(Seq((Not("M"), Plus(A), N, B)), key="k"), 20_000, "A" * 90 + "B" * 9 + "MN", keys=20),
    "trailing NOT": Family(Query(Plus(Seq((Plus(A), B, N)))), 20_000, "A" * 990 + "B" * 99 + "N"),
    "A+ of 1,000 keys": Family(Query(Plus(A), key="k"), 100_000, "AAB", keys=1000),
    "(SEQ(A+, B))+ of 1,000 keys, added up": Family(Query(ROUNDS, key="k", grouped=False), 50_000, "AAB", keys=1000),
    "100 windows overlap": Family(Query(ROUNDS, within=2000, slide=20), 1_600, "AABC", gap=20),
    "100 windows overlap, with NOT": Family(
        Query(Seq((Plus(A), N, B)), within=2000, slide=20), 1_200, "AAAAAABBN", gap=20
    ),
    "windows that the slide does not divide": Family(
        Query(Plus(A), key="k", within=70, slide=30), 20_000, "AB", keys=10, gap=0.5
    ),
    "gaps between windows": Family(Query(ROUNDS, within=500, slide=700), 30_000, "AABC"),
    "rising": Family(Query(Plus(A), adjacent=(RISES,)), 20_000, "AAAB"),
    "rising, by few steps": Family(Query(Plus(A), adjacent=(RISES,)), 20_000, "AAAB", high=6),
    "falling, then B": Family(Query(Seq((Plus(A), B)), adjacent=(FALLS,)), 10_000, "AAAB"),
    "rising in rounds": Family(
        Query(ROUNDS, adjacent=(RISES, Compare("B", "x", "<", "A", "x"))), 5_000, "AAAB"
    ),
    "rising, with NOT": Family(Query(Seq((Plus(A), N, B)), adjacent=(RISES,)), 10_000, "A" * 300 + "B" * 30 + "N"),
    "rising in windows": Family(Query(Plus(A), adjacent=(RISES,), within=500, slide=100), 6_000, "AAB"),
    "equal": Family(Query(Plus(A), adjacent=(SAME,)), 20_000, "AAB", keys=20),
    "equal and rising": Family(Query(Plus(A), adjacent=(SAME, RISES)), 10_000, "AAB", keys=20),
    "two inequalities": Family(Query(Plus(A), adjacent=(RISES, LOWER)), 1_000, "AAB", keys=50),
    "no comparison": Family(
        Query(Plus(A), adjacent=(Adjacent("A", "A", "abs(A.x - NEXT(A).x) < 2", closest),)), 1_000, "AAB"
    ),
    "next": Family(Query(ROUNDS, NEXT), 50_000, "AAB"),
    "next, with NOT": Family(Query(Plus(Seq((Plus(A), N, B))), NEXT), 30_000, "AAAABBN"),
    "next, rising": Family(Query(Plus(A), NEXT, adjacent=(RISES,)), 10_000, "AAB"),
    "next, rising in rounds": Family(Query(ROUNDS, NEXT, adjacent=(RISES,)), 30_000, "AAB"),
    "next, equal": Family(Query(Plus(A), NEXT, adjacent=(SAME,)), 20_000, "AAB", keys=20),
    "next, rising, in windows of 100 keys": Family(
        Query(Plus(A), NEXT, adjacent=(RISES,), key="k", within=3000, slide=1000), 30_000, "AAB", keys=100
    ),
    "contiguous": Family(Query(ROUNDS, CONTIGUOUS), 50_000, "AAB", gap=2),
    "contiguous, falling": Family(Query(Plus(A), CONTIGUOUS, adjacent=(FALLS,)), 50_000, "AAAB", gap=2),
    "contiguous, of 1,000 keys": Family(Query(Seq((Plus(A), B)), CONTIGUOUS, key="k"), 100_000, "AAB", keys=1000),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_few_events_of_every_family(name: str) -> None:
    """The oracle once more, on the queries that it decides below; and the engine, on streams that it can enumerate."""
    family = FAMILIES[name]
    dense = replace(family, types="".join(sorted(set(family.types))), keys=min(family.keys, 2))
    for events in (0, 1, 10):
        stream = dense.stream(events)
        expected = answers(family.query, stream)
        found = tl.run(family.query.text, to_table(stream), engine="reference")
        assert not wrong(family.query, found, expected, exactly)
        compare_with_local(family.query, stream, expected)


LONG_DAILY = ("rising, by few steps", "next, rising")
"""Families whose streams are long every day: the first has counts of two words, the second of many."""
SHORTER = 60
"""By how much the streams of the others are shorter, but for a deep run."""


@pytest.mark.parametrize("name", FAMILIES)
def test_large_streams(name: str) -> None:
    family = FAMILIES[name]
    long = MORE or name in LONG_DAILY
    stream = family.stream(family.events if long else family.events // SHORTER)
    expected = answers(family.query, stream)
    assert expected
    turn = list(FAMILIES).index(name) % 3
    systems = SYSTEMS if MORE else SYSTEMS[:1] if long else (SYSTEMS[:1], SYSTEMS[:2], SYSTEMS[::2])[turn]
    compare_with_local(family.query, stream, expected, systems)


CHECKS = {"exact": exactly, "float": in_doubles, "log": in_logarithms}


def compare_with_local(query: Query, stream: list[Row], expected: Answers, systems: Sequence[str] = SYSTEMS) -> None:
    """In these number systems."""
    table = to_table(stream)
    checks = {name: CHECKS[name] for name in systems}
    if any(tally.total < 0 for tally in expected.values()):
        checks.pop("log", None)
    for numeric, check in checks.items():
        found = tl.run(query.text, table, engine="local", numeric=numeric)
        assert not wrong(query, found, expected, check)[:5], f"{numeric}: {query.text}"


def test_random_queries_on_short_streams() -> None:
    """Many cases, of a dozen events: few enough to see what went wrong."""
    for query, stream, expected in random_cases(EXAMPLES, 1, [7, 9, 12]):
        found = tl.run(query.text, to_table(stream), engine="local")
        assert not wrong(query, found, expected, exactly), f"{query.text}\n{stream}"
        if MORE:
            with interpreted_only():
                assert tl.run(query.text, to_table(stream), engine="local").equals(found), "interpreted"


def test_random_queries_on_long_streams() -> None:
    """Combinations that no family has, with counts of a hundred digits."""
    for query, stream, expected in random_cases(EXAMPLES // 8, 20, [50, 200, 400]):
        compare_with_local(query, stream, expected)
