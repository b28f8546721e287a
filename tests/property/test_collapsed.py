"""Collapsed trends: the local engine gives the rows of the reference, and each row, enumerated, gives its matches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, Case, Knobs, cases, streams, to_table, windows

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.kernels.trends import collapsed, spines

COLLAPSED = {"semantics": (ANY,), "outputs": ("collapsed",)}
KNOBS = {
    "anything": Knobs(**COLLAPSED),
    "spines": Knobs(**COLLAPSED, negation=False, conjunction=False, most_conjuncts=1),
    "conditions": Knobs(**COLLAPSED, negation=False, conjunction=False, most_atoms=3),
    "no conditions": Knobs(**COLLAPSED, negation=False, conjunction=False, most_conjuncts=0, predicates=False),
    "extreme values": Knobs(**COLLAPSED, negation=False, conjunction=False, extreme=True, most_atoms=3),
}
EXAMPLES = amount(30)
WITH_ROWS = 0.2
"""The least share of pairs that have a row at all."""


@contextmanager
def in_small_pieces(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spines, "CHUNK", size)
        patch.setattr(collapsed, "MOST_HELD", size)
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
        with in_small_pieces(1 + len(case.query) % 7):
            pieces = tl.run(case.query, to_table(case.events[::-1]), engine="local")
        assert rows_of(pieces) == rows_of(expected), f"in small pieces, rows reversed: {case.query}"
        assert entries_of(found) == entries_of(expected), "the order of events of one time"
        compared += 1
        with_rows += expected.num_rows > 0

    compare()
    assert compared >= 0.95 * EXAMPLES
    assert with_rows >= at_least(WITH_ROWS, compared)


def entries_of(rows: pa.Table) -> list[str]:
    """The rows in one order, with their events as they are listed."""
    return sorted(str(row) for row in rows.to_pylist())


@pytest.mark.parametrize("kind", ["anything", "spines", "conditions"])
def test_rows_enumerated_are_the_matches(kind: str) -> None:
    compared, with_rows = 0, 0

    @thorough(EXAMPLES // 2)
    @given(cases(KNOBS[kind]))
    def compare(case: Case) -> None:
        nonlocal compared, with_rows
        events = to_table(case.events)
        try:
            rows = tl.run(case.query, events, engine="local")
        except (BindError, PlanError):
            assume(False)
            raise
        shown = rows_of(rows)
        # rows that look alike differ in positions that no row shows
        assume(len(set(shown)) == len(shown))
        source = events if "NOT" in case.query else None
        found = [batch for row in rows.to_pylist() for batch in expanded(case.query, row, source)]
        listed = [row for batch in found for row in batch.to_pylist()]
        matches = tl.run(case.query.replace("COLLAPSED TRENDS", "TRENDS"), events, engine="local")
        assert rows_of(listed) == rows_of(matches), case.query
        compared += 1
        with_rows += len(rows) > 0

    compare()
    assert with_rows >= at_least(WITH_ROWS, compared)


def expanded(query: str, row: dict[str, Any], source: pa.Table | None) -> list[pa.RecordBatch]:
    """The matches of a row, as many as it says."""
    found = list(tl.expand(query, row, source))
    assert sum(batch.num_rows for batch in found) == row["matches"], query
    return found


# ------------------------------------------------------------------------------------------ conditions on gaps

PATTERNS = (
    "SEQ(A a, B+ b[], C c)", "SEQ(A a, (B b)*, C c)", "SEQ(B+ b[], C c)", "SEQ(A a, B+ b[])", "B+ b[]",
    "SEQ(A a, (SEQ(B b, C c))+)", "SEQ((A a)?, B+ b[], (C c)?)", "SEQ(A a, B+ b[], C+ c[])",
)  # fmt: skip
CONDITIONS = (
    "a.x < NEXT(b).x", "a.x = NEXT(b).x", "abs(a.x - NEXT(b).x) < 2", "a.x < b.x", "a.y != b.y", "a.x + c.x > b.x",
    "b.x < NEXT(b).x", "b.x >= NEXT(b).x", "b.x != NEXT(b).x", "b.x = NEXT(b).x", "abs(b.x - NEXT(b).x) < 2",
    "(b.x < NEXT(b).x OR b.g = NEXT(b).g)", "b.x < NEXT(b).x AND b.y > NEXT(b).y", "b.x > NEXT(c).x",
    "abs(b.y - NEXT(c).y) < 2", "a.x < c.x", "b[i].x > b[i-1].x", "abs(b[i].x - b[i-1].x) < 3",
)  # fmt: skip


@st.composite
def on_gaps(draw: st.DrawFn) -> Case:
    """A pattern with conditions on adjacent events, and on Kleene events with others, where the pattern has them."""
    pattern = draw(st.sampled_from(PATTERNS))
    known = [one for one in CONDITIONS if set(re.findall(r"\b([abc])\b(?=[.\[)])", one)) <= set(pattern)]
    where = draw(st.lists(st.sampled_from(known), max_size=3, unique=True))
    clauses = ["RETURN COLLAPSED TRENDS", f"PATTERN {pattern}", f"WHERE {' AND '.join(where)}" if where else ""]
    return Case("\n".join([*clauses, *draw(windows())]), draw(streams(9, "ABBBC")))


def test_conditions_on_gaps() -> None:
    @thorough(EXAMPLES)
    @given(on_gaps())
    def compare(case: Case) -> None:
        events = to_table(case.events)
        try:
            found = tl.run(case.query, events, engine="local")
        except BindError:
            assume(False)
            raise
        assert entries_of(found) == entries_of(tl.run(case.query, events, engine="reference")), case.query

    compare()
