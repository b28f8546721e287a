"""Interpreted kernels: they give what compiled ones give, and give way to them when that is faster or safer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.kernels.jit import interpreted
from trendloom.kernels.jit.compiled import counting_compilations, implements, is_interpreted, lacks, njit, operation
from trendloom.kernels.jit.interpreted import Overtaken, compiled_first, interpreted_only, unboxed

ROUNDS = 3_000_000
"""Steps that take Python far longer than the patience, and compiled code no time."""


@pytest.fixture(autouse=True)
def auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interpreted.VARIABLE, "auto")


def test_a_kernel_that_was_never_compiled_is_interpreted() -> None:
    @njit(cache=False)
    def count(values: Any) -> Any:
        return len(values)

    with counting_compilations() as found:
        assert count(np.arange(9)) == 9
    assert not found


def test_results_are_pythons_numbers() -> None:
    @njit(cache=False)
    def total_of(values: Any) -> Any:
        return values[0] + values[1]

    total = total_of(np.array([4, 6]))
    assert (total, type(total)) == (10, int)
    pair = unboxed((np.float64(0.5), (np.bool_(True), "text")))
    assert pair == (0.5, (True, "text"))
    assert [type(one) for one in (pair[0], pair[1][0])] == [float, bool]


def run_apart(code: str, cache: Path, mode: str) -> list[str]:
    """What a process of its own prints, with a folder of compiled code of its own."""
    environment = {**os.environ, interpreted.VARIABLE: mode, "TRENDLOOM_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


LONG = f"""
import numpy as np
import pyarrow as pa
import trendloom as tl
from trendloom.kernels.jit import interpreted
from trendloom.kernels.columns.segments import sum_int64
from trendloom.kernels.jit.compiled import counting_compilations
interpreted.LARGEST, size = 1 << 30, {10 * ROUNDS}
with counting_compilations() as found:
    sums, _ = sum_int64(np.array([0, size]), np.ones(size, np.int64), np.ones(size, np.bool_))
print(int(sums[0]), len(found), len(sum_int64.overloads))
"""


def test_what_takes_long_is_compiled_by_another_process_meanwhile(tmp_path: Path) -> None:
    assert run_apart(LONG, tmp_path, "auto") == [str(10 * ROUNDS), "0", "1"]


STORED = """
import numpy as np
import pyarrow as pa
from trendloom.kernels.columns.segments import sum_int64
def total(size):
    sums, _ = sum_int64(np.array([0, size]), np.ones(size, np.int64), np.ones(size, np.bool_))
    return int(sums[0]), len(sum_int64.overloads)
for size in (5, 5000, 5):
    print(*total(size))
"""


def test_a_handful_of_events_does_not_wait_for_code_that_is_stored(tmp_path: Path) -> None:
    """More of them do, and then it is there for a handful as well."""
    assert run_apart(STORED, tmp_path, "always")[1] == "1", "compiled, and stored"
    assert run_apart(STORED, tmp_path, "auto") == ["5", "0", "5000", "1", "5", "1"]


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, NOT C, B b) WHERE [k] WITHIN 10",
        "PATTERN SEQ(A a, B+ b[]) SEMANTICS skip-till-next-match",
        "PATTERN SEQ(A, B) SEMANTICS contiguous",
        "RETURN COMPLETE TRENDS PATTERN B b+ WHERE b.x < NEXT(b).x",
        "RETURN COLLAPSED TRENDS PATTERN SEQ(A, B+)",
        "RETURN COUNT(*), SUM(b.x) PATTERN SEQ(A, B b+)",
        "RETURN k, COUNT(*) PATTERN B b+ WHERE [k] AND b.x < NEXT(b).x GROUP BY k WITHIN 10 SLIDE 5",
        "PATTERN SEQ(A a, B b) RANK BY a.x + b.x LIMIT 3",
        "PATTERN AND(A a, B b) RANK BY MERGE(sum, a.x, b.x) LIMIT 3",
    ],
)
def test_usual_queries_over_a_handful_of_events_load_no_compiled_code(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = range(12)
    events = pa.table({"type": list("ABBC" * 3), "time": rows, "k": [row % 2 for row in rows], "x": rows})
    monkeypatch.setattr(interpreted, "_loaded", threading.Event())
    monkeypatch.setattr(interpreted.Interpretable, "is_stored", lambda self, signature: True)
    assert tl.run(query, events).num_rows
    assert not interpreted._loaded.is_set()


def test_a_handful_of_events_that_takes_long_is_left_to_code_that_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: nobody compiles anything."""
    step = 2

    @njit(cache=False)
    def climb(rounds: Any, into: Any) -> Any:
        for _ in range(rounds):
            into[0] += step
        return into[0]

    climb.name = ("no", "such", "kernel")
    monkeypatch.setattr(interpreted, "_loaded", threading.Event())
    monkeypatch.setattr(interpreted.Interpretable, "is_stored", lambda self, signature: True)
    asked: list[object] = []
    monkeypatch.setattr(interpreted._compiler, "submit", lambda *given: asked.append(given))
    assert climb(10 * ROUNDS, np.zeros(1, np.int64)) == 20 * ROUNDS
    assert not asked
    assert len(climb.overloads) == 1


def test_a_kernel_that_another_process_cannot_find_is_compiled_here() -> None:
    """And starts anew: `into` has not counted what was interpreted first."""
    step = 2

    @njit(cache=False)
    def climb(rounds: Any, into: Any) -> Any:
        for _ in range(rounds):
            into[0] += step
        return into[0]

    with counting_compilations() as found:
        assert climb(10 * ROUNDS, np.zeros(1, np.int64)) == 20 * ROUNDS
    assert sum(found.values()) == 1


def test_numbers_that_leave_their_type_are_left_to_compiled_code() -> None:
    """NumPy adds bytes to a byte, compiled code to a word."""

    @njit(cache=False)
    def total(values: Any) -> Any:
        return values[0] + values[1]

    assert total(np.array([200, 100], np.uint8)) == 300
    assert total(np.array([1, 2], np.uint8)) == 3

    @njit(cache=False)
    def ratio(values: Any) -> Any:
        return values[0] / values[1]

    with pytest.raises(ZeroDivisionError):
        ratio(np.zeros(2))


def test_narrow_doubles_are_not_interpreted() -> None:
    @njit(cache=False)
    def twice(values: Any) -> Any:
        return values[0] * 2.0

    with counting_compilations() as found:
        assert twice(np.array([0.1], np.float32)) == float(np.float32(0.1)) * 2.0
    assert found


def test_words_wrap_where_a_kernel_says_so() -> None:
    @njit(cache=False, wraps=True)
    def hashed(word: Any) -> Any:
        return np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)

    @njit(cache=False)
    def outer(words: Any) -> Any:
        return hashed(words[0])

    with counting_compilations() as found:
        assert outer(np.array([3], np.uint64)) == 3 * 0x9E3779B97F4A7C15 % 2**64
    assert not found
    assert np.geterr()["over"] == "warn"


def test_errors_of_a_kernel_are_errors() -> None:
    @njit(cache=False)
    def refuse(values: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        refuse(np.zeros(1))
    assert np.geterr()["divide"] == "warn"
    assert interpreted._here.role is interpreted.Role.CALLER


def test_an_exception_from_outside_never_leaves_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the moment of being overtaken falls: the answer is right, and nothing is raised later."""
    monkeypatch.setattr(interpreted, "PATIENCE", 0.0)
    monkeypatch.setattr(interpreted, "GLANCE", 0.0005)
    for rounds in range(40):

        @njit(cache=False)
        def climb(rounds: Any, into: Any) -> Any:
            for _ in range(rounds):
                into[0] += 1
            return into[0]

        assert climb(rounds * 100, np.zeros(1, np.int64)) == rounds * 100
    for _ in range(1_000):
        pass
    assert not issubclass(Overtaken, Exception)


class StreamPartitionGroup(NamedTuple):
    values: Any
    extra: Any


@operation
def amount(partition_group: StreamPartitionGroup) -> int:
    """The values, and what is extra."""
    raise NotImplementedError


@implements(amount, {"nogil": True})
def _amount(partition_group: Any) -> Any:
    def with_extra(partition_group: Any) -> Any:
        return partition_group.values.sum() + partition_group.extra[0]

    def without(partition_group: Any) -> Any:
        return partition_group.values.sum()

    return without if lacks(partition_group, "extra") else with_extra


@njit(cache=False)
def amount_of(partition_group: Any) -> Any:
    return amount(partition_group)


@pytest.mark.parametrize("extra", [None, np.array([4])])
def test_operations_are_picked_by_type_and_by_value(extra: Any) -> None:
    partition_group = StreamPartitionGroup(np.arange(3), extra)
    expected = 3 if extra is None else 7
    with interpreted_only():
        assert amount_of(partition_group) == expected
    with compiled_first():
        assert amount_of(partition_group) == expected
    assert is_interpreted(partition_group)


SHORT = """
import numpy as np
import pyarrow as pa
from trendloom.kernels.columns.segments import grown
from trendloom.kernels.jit.compiled import counting_compilations
with counting_compilations() as found:
    grown(np.arange(2))
print(len(found) > 0)
"""


@pytest.mark.parametrize(("mode", "compiled"), [("always", "True"), ("never", "False"), ("auto", "False")])
def test_the_variable_decides(mode: str, compiled: str, tmp_path: Path) -> None:
    assert run_apart(SHORT, tmp_path, mode) == [compiled]


def test_compiled_first_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(interpreted.VARIABLE)
    with compiled_first():
        assert interpreted.mode() == "always"
    assert interpreted.VARIABLE not in os.environ
