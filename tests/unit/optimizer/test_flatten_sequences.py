"""Brackets of a pattern that mean nothing."""

from __future__ import annotations

import pytest
from tests.property.strategies import SCHEMA

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.optimizer.flatten_sequences import flatten_sequences
from trendloom.pattern.algebra import atoms
from trendloom.pattern.template import Template, build_template


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SEQ(A, SEQ(B, C))", "SEQ(A, B, C)"),
        ("SEQ(SEQ(A, SEQ(B, C)), D)", "SEQ(A, B, C, D)"),
        ("SEQ(A)", "A"),
        ("SEQ(SEQ(A), B)", "SEQ(A, B)"),
        ("SEQ(A, SEQ(NOT B, C))", "SEQ(A, NOT B, C)"),
        ("SEQ(SEQ(A, NOT B), C)", "SEQ(A, NOT B, C)"),
        ("SEQ(A, NOT SEQ(B, SEQ(C, D)), E)", "SEQ(A, NOT SEQ(B, C, D), E)"),
        ("SEQ(A, NOT SEQ(B), C)", "SEQ(A, NOT B, C)"),
        ("(SEQ(A, SEQ(B, C)))+", "(SEQ(A, B, C))+"),
        ("OR(SEQ(A, SEQ(B, C)), SEQ(D))", "OR(SEQ(A, B, C), D)"),
        ("AND(SEQ(A, SEQ(B, C)), D)", "AND(SEQ(A, B, C), D)"),
    ],
)
def test_before_and_after(before: str, after: str) -> None:
    plan = bind(parse_query(f"PATTERN {before}"), SCHEMA)
    found = flatten_sequences(plan).pattern
    assert found == bind(parse_query(f"PATTERN {after}"), SCHEMA).pattern
    assert [atom.position for atom in atoms(found)] == [atom.position for atom in atoms(plan.pattern)]
    assert _steps(build_template(found)) == _steps(build_template(plan.pattern))


def _steps(template: Template) -> list[object]:
    """All steps with the NOTs they cross; in whose round a NOT lies says nothing where both events are of one round."""
    every = [template.starts, *template.edges]
    return [[(e.position, e.target, e.rounds, {c.scope for c in e.crossings}) for e in edges] for edges in every]


@pytest.mark.parametrize("pattern", ["A", "SEQ(A, B)", "(SEQ(A, B))+", "SEQ(A, (SEQ(B, C))?)", "SEQ(A, (SEQ(B, C))+)"])
def test_left_alone(pattern: str) -> None:
    plan = bind(parse_query(f"PATTERN {pattern}"), SCHEMA)
    assert flatten_sequences(plan) is plan


def test_copies_are_parts_of_the_sequence() -> None:
    plan = flatten_sequences(bind(parse_query("PATTERN SEQ(A, B b{2}, C)"), SCHEMA))
    assert [type(part).__name__ for part in plan.pattern.parts] == ["Atom", "Round", "Round", "Atom"]  # type: ignore[union-attr]
