"""What the binder refuses about RANK BY and windows of operands: what is wrong, where, and the way out."""

from __future__ import annotations

import pytest
from tests.unit.logical.test_bind_errors import KINDS, TIMESTAMPS, check

from trendloom.model.schema import Column, Kind, Schema


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN A a RANK BY ⟨a.g⟩ LIMIT 3", "a preference is a number, not a string", "holds numbers"),
        ("PATTERN A a RANK BY ⟨a.x > 3⟩ LIMIT 3", "a preference is a number, not a boolean", "holds numbers"),
        ("PATTERN A a RANK BY ⟨a.moment⟩ LIMIT 3", "not a time", "b.time - a.time"),
        ("PATTERN A a RANK BY ⟨z.x⟩ LIMIT 3", "unknown variable 'z'", "there is 'a'"),
        ("PATTERN A a RANK BY a.⟨prise⟩ LIMIT 3", "A has no attribute 'prise'", "did you mean 'price'?"),
        ("RETURN COUNT(*) PATTERN A ⟨RANK BY COUNT(*) LIMIT 3⟩", "RANK BY ranks matches", "RETURN TRENDS"),
        ("RETURN COMPLETE TRENDS PATTERN A a ⟨RANK BY a.x LIMIT 3⟩", "RANK BY ranks matches", "RETURN TRENDS"),
        ("RETURN COLLAPSED TRENDS PATTERN A a ⟨RANK BY a.x LIMIT 3⟩", "RANK BY ranks matches", "RETURN TRENDS"),
        ("PATTERN A a RANK BY ⟨SUM(a.x)⟩ LIMIT 3", "an aggregate over all matches", "sum(a[].x)"),
        ("PATTERN A+ a[] RANK BY ⟨a.x⟩ LIMIT 3", "can bind several events", "max(a[].x)"),
        ("PATTERN A+ a[] RANK BY 2 + ⟨a[].x⟩ LIMIT 3", "stands for many events", "sum or avg"),
        ("PATTERN SEQ(A a, NOT B b) RANK BY a.x + ⟨b.x⟩ LIMIT 3", "NOT", ""),
        ("RETURN ⟨a.x AS rank⟩ PATTERN A a RANK BY a.x LIMIT 3", "two columns named 'rank'", "AS"),
    ],
)
def test_preferences(query: str, message: str, hint: str) -> None:
    check(query, message, hint)


MERGE = "MERGE merges the preferences of several sequences"


@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, B b)", "SEQ(A a, NOT C, B b)", "SEQ(A a, B b?)", "(SEQ(A a, B b) WITHIN 5)"]
)
def test_merge_needs_several_sequences(pattern: str) -> None:
    check(f"PATTERN {pattern} RANK BY ⟨MERGE(min, a.x, b.x)⟩ LIMIT 3", MERGE, "one preference: RANK BY")


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN AND(⟨SEQ(A a, B b) WITHIN 5⟩, C c)", "only where matches are ranked", "add RANK BY"),
        ("PATTERN AND(A a WITHIN ⟨5 min⟩, B b) WITHIN 3 min RANK BY a.x LIMIT 1", "longer than", "at most 3 min"),
        ("PATTERN AND(A a WITHIN ⟨0.5 s⟩, B b) RANK BY a.x LIMIT 1", "not a whole number", "time_unit="),
        ("PATTERN SEQ(A a, ⟨NOT B WITHIN 5⟩, C c) RANK BY a.x LIMIT 1", "does not go with NOT", "WITHIN clause"),
        ("PATTERN SEQ(A a, NOT (⟨B WITHIN 5⟩), C c) RANK BY a.x LIMIT 1", "does not go with a NOT", "WITHIN clause"),
        ("PATTERN SEQ(A a, (⟨SEQ(B, C) WITHIN 5⟩)+) RANK BY a.x LIMIT 1", "with a repetition", "WITHIN clause"),
    ],
)
def test_windows_of_operands(query: str, message: str, hint: str) -> None:
    check(query, message, hint)


def test_plain_numbers_are_not_durations_of_timestamps() -> None:
    query = "PATTERN AND(A a WITHIN ⟨5⟩, B b) RANK BY a.x LIMIT 1"
    check(query, "a plain number is not a duration", "5 s", TIMESTAMPS)


def test_an_input_column_named_rank() -> None:
    columns = tuple(Column(name, kind) for name, kind in (KINDS | {"rank": Kind.INT}).items())
    check("PATTERN A a ⟨RANK BY a.x LIMIT 3⟩", "a column named 'rank'", "rename", Schema(columns))
