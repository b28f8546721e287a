"""The template of a pattern: which position follows which, crossing which NOTs, starting which rounds."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from tests.property.amounts import amount, thorough
from tests.property.strategies_patterns import Allowed, skeletons

from trendloom.errors import PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.frontend.tql.printer import write_pattern
from trendloom.logical.bind.patterns import bind_pattern
from trendloom.pattern import algebra
from trendloom.pattern.algebra import Atom, Both, Either, Kleene, Maybe, Negation, Pattern, Round, Sequence
from trendloom.pattern.template import (
    Crossing,
    Edge,
    Template,
    adjacent_variables,
    ambiguous_types,
    build_template,
    plural_variables,
)


def pattern_of(text: str) -> Pattern:
    bound = bind_pattern(parse_query(f"PATTERN {text}").pattern).pattern
    assert bound is not None
    return bound


def template_of(text: str) -> Template:
    return build_template(pattern_of(text))


def edge(template: Template, source: int | None, target: int) -> Edge:
    """The one edge between two positions; None is the beginning."""
    edges = template.starts if source is None else template.edges[template.position_of.index(source)]
    (found,) = [edge for edge in edges if edge.position == target]
    return found


@pytest.mark.parametrize(
    ("text", "first", "last", "follow"),
    [
        ("A", {0}, {0}, {0: set()}),
        ("A+", {0}, {0}, {0: {0}}),
        ("A*", {0}, {0}, {0: {0}}),
        ("SEQ(A+, B)", {0}, {1}, {0: {0, 1}, 1: set()}),
        ("(SEQ(A+, B))+", {0}, {1}, {0: {0, 1}, 1: {0}}),
        ("(A+)+", {0}, {0}, {0: {0}}),
        ("SEQ(A*, B?, C)", {0, 1, 2}, {2}, {0: {0, 1, 2}, 1: {2}, 2: set()}),
        ("SEQ(A?, B?)", {0, 1}, {0, 1}, {0: {1}, 1: set()}),
        ("(SEQ(A, B?))+", {0}, {0, 1}, {0: {0, 1}, 1: {0}}),
        ("OR(SEQ(A, B), C)", {0, 2}, {1, 2}, {0: {1}, 1: set(), 2: set()}),
        ("(OR(A, B))+", {0, 1}, {0, 1}, {0: {0, 1}, 1: {0, 1}}),
        ("A{2,3}", {0}, {1, 2}, {0: {1}, 1: {2}, 2: set()}),
        ("A{3,}", {0}, {2}, {0: {1}, 1: {2}, 2: {2}}),
        ("SEQ(A, NOT SEQ(B, C), D)", {0}, {3}, {0: {3}, 3: set()}),
        ("AND(A, B)", {0, 1}, {0, 1}, {0: {1}, 1: {0}}),
        ("SEQ(A, AND(B, C?), D)", {0}, {3}, {0: {1, 2}, 1: {2, 3}, 2: {1, 3}, 3: set()}),
    ],
)
def test_first_last_follow(text: str, first: set[int], last: set[int], follow: dict[int, set[int]]) -> None:
    template = template_of(text)
    assert (template.first, template.last) == (first, last)
    assert template.follow == follow


@pytest.mark.parametrize(
    ("text", "length"),
    [("A", 1), ("A*", 1), ("(SEQ(A+, B))+", 2), ("SEQ(A*, B?, C)", 1), ("A{3,}", 3), ("AND(SEQ(A, B), C+)", 3),
     ("OR(SEQ(A, B, C), SEQ(D, E))", 2), ("SEQ(A, NOT SEQ(X, Y, Z), B)", 2)],
)  # fmt: skip
def test_minimal_length(text: str, length: int) -> None:
    assert template_of(text).minimal_length == length


class TestNegation:
    def test_between_two_events(self) -> None:
        assert edge(template_of("SEQ(A, NOT X, B)"), 0, 2).crossings == {Crossing(1)}

    def test_leading_and_trailing(self) -> None:
        template = template_of("SEQ(NOT X, A, NOT Y)")
        assert edge(template, None, 1).crossings == {Crossing(1)}
        assert template.accepts == ((frozenset({Crossing(2)}),),)

    def test_brackets_make_no_difference(self) -> None:
        for text in ("SEQ(A, NOT X, B)", "SEQ(SEQ(A, NOT X), B)", "SEQ(A, SEQ(NOT X, B))"):
            assert {crossing.scope for crossing in edge(template_of(text), 0, 2).crossings} == {1}

    def test_several_are_crossed_together(self) -> None:
        assert edge(template_of("SEQ(A, NOT X, B?, NOT Y, C)"), 0, 4).crossings == {Crossing(1), Crossing(2)}

    def test_at_the_end_of_a_round_it_lies_in_the_round_before(self) -> None:
        template = template_of("(SEQ(A, NOT X))+")
        assert edge(template, 0, 0).crossings == {Crossing(1, late=False)}
        assert template.accepts == ((frozenset({Crossing(1)}),),)

    def test_at_the_beginning_of_a_round_it_lies_in_the_round_after(self) -> None:
        template = template_of("(SEQ(NOT X, A))+")
        assert edge(template, 1, 1).crossings == {Crossing(1, late=True)}
        assert edge(template, None, 1).crossings == {Crossing(1)}

    def test_an_option_not_taken_is_not_crossed(self) -> None:
        template = template_of("SEQ(A, (SEQ(NOT X, B))?, C)")
        assert edge(template, 0, 3).crossings == set()
        assert edge(template, 0, 2).crossings == {Crossing(1, late=True)}

    def test_an_alternative_that_crosses_more_is_dropped(self) -> None:
        assert edge(template_of("SEQ(A, OR(B?, SEQ(NOT X, C)), D)"), 0, 4).crossings == set()

    def test_rounds_keep_alternatives_apart(self) -> None:
        edges = template_of("(SEQ(A+, NOT X))+").edges[0]
        assert {(found.crossings, found.rounds) for found in edges} == {
            (frozenset(), frozenset({1})),
            (frozenset({Crossing(1)}), frozenset({0, 1})),
        }


def test_patterns_that_differ_in_types_and_variables_have_one_template() -> None:
    """Also where they differ inside NOT, of which the template knows the place alone."""
    one = template_of("SEQ(A a, NOT SEQ(B b, C c), D+ d[], (E e)?)")
    assert template_of("SEQ(P p, NOT SEQ(Q q, R r), S+ s[], (T t)?)") is one
    assert template_of("SEQ(P p, NOT SEQ(Q q, R r), S s, (T t)?)") != one
    assert one.reached[0] == {1, 2}
    assert one.reached[1] == {1, 2}
    assert not one.reached[2]


def test_nested_options_do_not_multiply_alternatives() -> None:
    template = template_of(f"SEQ({', '.join(['(A?)?'] * 30)})")
    assert sum(map(len, template.edges)) == 30 * 29 / 2
    assert all(ways == (frozenset(),) for ways in template.accepts)


class TestRounds:
    def test_a_step_starts_the_rounds_it_enters(self) -> None:
        template = template_of("(SEQ(A+, B))+")
        assert edge(template, None, 0).rounds == {0, 1}
        assert edge(template, 0, 0).rounds == {1}
        assert edge(template, 0, 1).rounds == set()
        assert edge(template, 1, 0).rounds == {0, 1}

    def test_every_copy_is_a_round(self) -> None:
        template = template_of("(SEQ(A, B)){2}")
        assert [edge(template, None, 0).rounds, edge(template, 0, 1).rounds, edge(template, 1, 2).rounds] == [
            {0}, set(), {1},
        ]  # fmt: skip


class TestConjunction:
    def test_states_are_products(self) -> None:
        assert len(template_of("AND(A, B)").position_of) == 4
        assert len(template_of("AND(A, B, C)").position_of) == 12

    def test_all_parts_must_end(self) -> None:
        template = template_of("AND(SEQ(A, B), C)")
        complete = [position for position, ways in zip(template.position_of, template.accepts, strict=True) if ways]
        assert sorted(set(complete)) == [1, 2]
        assert template.minimal_length == 3

    def test_a_part_may_be_nothing_but_not_all(self) -> None:
        assert template_of("AND(A, B?)").minimal_length == 1
        template = template_of("SEQ(X, AND(A?, B?), Y)")
        assert 3 not in template.follow[0]

    def test_equal_times_go_from_earlier_to_later_parts(self) -> None:
        template = template_of("AND(A, B)")
        ties = {
            (template.position_of[state], found.position): found.may_tie
            for state, edges in enumerate(template.edges)
            for found in edges
        }
        assert ties == {(0, 1): True, (1, 0): False}

    def test_too_many_transitions_are_refused(self) -> None:
        with pytest.raises(PlanError, match="transitions"):
            template_of("AND(A{40}, B{40}, C{40})")


@pytest.mark.parametrize(
    ("text", "plural"),
    [
        ("SEQ(A a, B b)", set()),
        ("SEQ(A+ a[], B b)", {"a"}),
        ("(SEQ(A a, B b?))+", {"a", "b"}),
        ("A a{2}", {"a"}),
        ("A a{0,1}", set()),
        ("SEQ(A, B, A)", {"A"}),
        ("OR(A a, A b)", set()),
        ("AND(A, A)", {"A"}),
        ("SEQ(A a, NOT B+ b[], C c)", set()),
    ],
)
def test_plural_variables(text: str, plural: set[str]) -> None:
    assert plural_variables(pattern_of(text)) == plural


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("SEQ(A a, B b?, C c)", {("a", "b"), ("a", "c"), ("b", "c")}),
        ("SEQ(A+ a[], B b)", {("a", "a"), ("a", "b")}),
        ("SEQ(A a, NOT B x, C c)", {("a", "c")}),
        ("AND(A a, SEQ(B b, C c))", {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c")}),
    ],
)
def test_adjacent_variables(text: str, pairs: set[tuple[str, str]]) -> None:
    assert adjacent_variables(pattern_of(text)) == pairs


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SEQ(A+, A+)", "A A A"),
        ("OR(A, A)", "A"),
        ("SEQ(A?, A?)", "A"),
        ("AND(A, A)", "A A"),
        ("SEQ(A*, B?, A*)", "A"),
        ("(A+)+", None),
        ("SEQ(A*, A)", None),
        ("(SEQ(A+, B))+", None),
        ("AND(A, B)", None),
        ("SEQ(A, NOT A+, A)", None),
    ],
)
def test_ambiguity(text: str, word: str | None) -> None:
    found = ambiguous_types(pattern_of(text))
    assert (None if found is None else " ".join(found)) == word


# ----------------------------------------------------------------------- against the definition, word by word

LONGEST = 4
Word = tuple[int, ...]


def words(pattern: Pattern) -> set[Word]:
    """The sequences of positions of a pattern, up to LONGEST, straight from the definition."""
    match pattern:
        case Atom():
            return {(pattern.position,)}
        case Negation():
            return {()}
        case Sequence():
            return concatenated([words(part) for part in pattern.parts])
        case Either():
            return set().union(*(words(part) for part in pattern.parts))
        case Maybe():
            return {()} | words(pattern.body)
        case Round():
            return words(pattern.body)
        case Kleene():
            once = words(pattern.body)
            found = once
            for _ in range(LONGEST):
                found = found | concatenated([found, once])
            return found
        case Both():
            found = {()}
            for part in pattern.parts:
                found = {word for left, right in product(found, words(part)) for word in interleaved(left, right)}
            return {word for word in found if word}
    raise AssertionError(pattern)


def concatenated(languages: list[set[Word]]) -> set[Word]:
    found: set[Word] = {()}
    for language in languages:
        found = {left + right for left in found for right in language if len(left + right) <= LONGEST}
    return found


def interleaved(left: Word, right: Word) -> set[Word]:
    if len(left) + len(right) > LONGEST:
        return set()
    if not left or not right:
        return {left + right}
    first = {(left[0], *rest) for rest in interleaved(left[1:], right)}
    return first | {(right[0], *rest) for rest in interleaved(left, right[1:])}


def accepted(template: Template) -> set[Word]:
    found: set[Word] = set()
    paths = [((found_edge.position,), found_edge.target) for found_edge in template.starts]
    while paths:
        word, state = paths.pop()
        if template.accepts[state]:
            found.add(word)
        if len(word) < LONGEST:
            paths.extend(((*word, step.position), step.target) for step in template.edges[state])
    return found


@thorough(amount(150))
@given(skeletons(Allowed(5, 3, 2, negation=True, conjunction=True)))
def test_template_accepts_what_the_definition_says(pattern: object) -> None:
    bound = pattern_of(write_pattern(pattern))  # type: ignore[arg-type]
    assert accepted(build_template(bound)) == {word for word in words(bound) if word}
    inner = [negation.body for negation in algebra.negations(bound)]
    for body in inner:
        assert accepted(build_template(body)) == {word for word in words(body) if word}
