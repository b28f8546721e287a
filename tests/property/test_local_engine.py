"""The local engine gives the rows of the reference, for random queries over random streams.

The examples are the same in every run. To look further, with new ones each time:
`TRENDLOOM_EXAMPLES=5000 pytest tests/property/test_local_engine.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from hypothesis import assume, given
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, Case, Knobs, cases, to_table

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.kernels.jit.interpreted import interpreted_only
from trendloom.kernels.match.any import construct_matches
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.match.next import follow_runs

ROWS = ("trends", "values")
KNOBS = {
    "any": Knobs(semantics=(ANY,), outputs=ROWS),
    "any, of neighbours": Knobs(
        semantics=(ANY,),
        outputs=ROWS,
        classes=("local", "adjacent", "previous"),
        conjunction=False,
        predicates=False,
    ),
    "next": Knobs(semantics=(NEXT,), outputs=ROWS),
    "next, of whole variables": Knobs(
        semantics=(NEXT,),
        outputs=("trends",),
        classes=("whole",),
        most_atoms=3,
        negation=False,
        predicates=False,
        partitions=False,
        windows=False,
    ),
    "contiguous": Knobs(semantics=(CONTIGUOUS,), outputs=ROWS),
    "aggregates": Knobs(outputs=("aggregates",)),
    "complete": Knobs(semantics=(ANY,), outputs=("complete",)),
    "complete, one variable": Knobs(semantics=(ANY,), outputs=("complete",), most_atoms=1, negation=False),
    "few rules": Knobs(most_conjuncts=1, predicates=False),
    "extreme values": Knobs(outputs=("trends", "aggregates"), extreme=True, negation=False, most_atoms=3),
    "remainders": Knobs(outputs=("trends", "values", "complete", "collapsed"), hiding=True),
    "remainders of runs": Knobs(semantics=(NEXT, CONTIGUOUS), outputs=ROWS, hiding=True, most_conjuncts=1),
    "totals of remainders": Knobs(outputs=("aggregates",), hiding=True, most_conjuncts=1),
    "not in not": Knobs(outputs=("trends",), nesting=3, partitions=False, most_conjuncts=2),
}
EXAMPLES = amount(20)
WITH_ROWS = 0.2
"""The least share of pairs that have a row at all: comparing nothing with nothing proves little."""


def in_small_pieces(chunk: int) -> dict[str, Callable[..., object]]:
    """The searches of the kernel, limited to a few entries at a time."""
    return {
        "match.expansion.enumerate_matches": partial(enumerate_matches, chunk=chunk),
        "match.next.follow_runs": partial(follow_runs, chunk=chunk),
        "match.any.construct_matches": partial(construct_matches, chunk=chunk),
    }


@contextmanager
def replaced(changes: dict[str, Callable[..., object]]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, function in changes.items():
            patch.setattr(f"trendloom.kernels.{name}", function)
        yield


@pytest.mark.parametrize("kind", KNOBS)
def test_local_equals_reference(kind: str) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES)
    @given(cases(KNOBS[kind]))
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        events = to_table(case.events)
        try:
            found = tl.run(case.query, events, engine="local")
        except (BindError, PlanError):
            assume(False)
            raise
        expected = tl.run(case.query, events, engine="reference")
        assert rows_of(found) == rows_of(expected), case.query
        assert found.schema == expected.schema
        if compared % 3 == 0:
            with interpreted_only():
                assert tl.run(case.query, events, engine="local").equals(found), f"not compiled: {case.query}"
        with replaced(in_small_pieces(chunk=1 + len(case.query) % 7)):
            pieces = tl.run(case.query, to_table(case.events[::-1]), engine="local")
        assert rows_of(pieces) == rows_of(expected), f"in small pieces, rows reversed: {case.query}"
        compared += 1
        with_rows += expected.num_rows > 0

    compare()
    assert compared >= 0.95 * EXAMPLES
    assert with_rows >= at_least(WITH_ROWS, compared)
