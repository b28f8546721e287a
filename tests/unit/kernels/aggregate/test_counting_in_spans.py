"""Matches under a bare WITHIN are counted at least and at most, without finding them; too many are refused at once."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.engines.measured_run import arranged
from trendloom.errors import RunError
from trendloom.kernels.contract import Expected
from trendloom.kernels.match.search import SearchKernel
from trendloom.options import Options

PATTERNS = (
    "SEQ(A+ a[], B b) WHERE [k]",
    "SEQ(A+ a[], B b) WHERE count(a[]) >= 3",
    "SEQ(A a, NOT C c, A{2,} b[]) WHERE [k]",
    "A+ a[] WHERE a.x < NEXT(a).x",
    "SEQ(A a, A+ b[], B c) WHERE a.x = c.x",
    "SEQ(A a, (B b | C c)+) WHERE [k]",
    "SEQ(A+ a[], B b) SEMANTICS skip-till-next-match WHERE [k]",
)


def stream(size: int, seed: int) -> pa.Table:
    number = random.Random(seed)
    return pa.table(
        {
            "time": sorted(number.randrange(90) for _ in range(size)),
            "type": [number.choice("AAABC") for _ in range(size)],
            "x": [number.randrange(4) for _ in range(size)],
            "k": [number.randrange(2) for _ in range(size)],
        }
    )


def counted(query: str, events: pa.Table) -> Expected:
    physical, block = arranged(query, events, Options(time_unit="s"))
    assert isinstance(physical.kernel, SearchKernel)
    assert physical.kernel.count is not None
    found = physical.kernel.count.expected(block)
    assert found is not None
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("within", [1, 7, 16, 23, 40])
@pytest.mark.parametrize("seed", range(3))
def test_the_number_lies_between_the_bounds(
    pattern: str, within: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trendloom.kernels.aggregate.block.WORTH_COUNTING", -1)
    events = stream(24, seed)
    query = f"RETURN TRENDS PATTERN {pattern} WITHIN {within} s"
    number = len(tl.run(query, events, engine="local", time_unit="s"))
    found = counted(query, events)
    assert found.least <= number <= found.number
    if within <= 16:  # the slide is a tick
        assert found.least == number


def bursts(size: int, every: int) -> pa.Table:
    rows = [
        row
        for ip in range(1, 4)
        for row in (
            *((ip * 100_000 + number * every, "Fail", ip) for number in range(size)),
            (ip * 100_000 + size * every, "Accept", ip),
        )
    ]
    time, types, ips = zip(*rows, strict=True)
    return pa.table({"time": time, "type": types, "ip": ips})


@pytest.mark.parametrize(
    "pattern", ["Fail+ f[], Accept a) WHERE [ip] AND count(f[]) >= 5", "Fail{5,} f[], Accept a) WHERE [ip]"]
)
def test_matches_in_bursts_are_refused_with_their_number(pattern: str) -> None:
    query = f"PATTERN SEQ({pattern} WITHIN 10 minutes RETURN count(f[]) AS failures, a.time AS at"
    with pytest.raises(RunError, match=r"there are at least 4.28e\+45 matches"):
        tl.run(query, bursts(150, 3), time_unit="s", engine="local")


def test_a_large_bound_alone_refuses_nothing() -> None:
    """In twice the length of WITHIN there would be billions."""
    query = "PATTERN SEQ(Fail+ f[], Accept a) WHERE [ip] WITHIN 10 s RETURN count(f[]) AS failures"
    assert len(tl.run(query, bursts(150, 1), time_unit="s", engine="local")) == 3 * (2**9 - 1)


def test_numbers_beyond_doubles_are_refused() -> None:
    query = "PATTERN SEQ(Fail+ f[], Accept a) WHERE [ip] WITHIN 1 day RETURN a.time"
    with pytest.raises(RunError, match=r"at least 1.12e\+307 matches"):
        tl.run(query, bursts(1500, 1), time_unit="s", engine="local")
