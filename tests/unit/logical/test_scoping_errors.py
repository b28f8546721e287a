"""Which variable may be used where: each rule of scoping has an error that quotes it, with the place (marked by ⟨⟩) and
the way out. What is allowed stands beside what is not."""

from __future__ import annotations

import pytest
from tests.unit.logical.test_bind_errors import SCHEMA, check, refused

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan


def plan_of(text: str) -> Plan:
    return bind(parse_query(text), SCHEMA)


# ------------------------------------------------------------------------------------------ where a NOT may stand


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN ⟨NOT A⟩",
        "PATTERN (⟨NOT A⟩)+",
        "PATTERN SEQ(A, (⟨NOT B⟩)?, C)",
        "PATTERN SEQ(A, NOT (⟨NOT B⟩), C)",
        "PATTERN SEQ(A, OR(B, ⟨NOT C⟩), D)",
        "PATTERN SEQ(A, EXISTS b (⟨NOT B b⟩), C)",
    ],
)
def test_a_not_outside_a_seq(query: str) -> None:
    check(
        query,
        "NOT stands outside a SEQ: it says what does not happen before, between or after the components of a SEQ",
        "say what it stands between: SEQ(A, NOT B, C)",
    )


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN ⟨SEQ(NOT A)⟩",
        "PATTERN ⟨SEQ(NOT A, NOT B)⟩",
        "PATTERN SEQ(A, NOT ⟨SEQ(NOT B, NOT C)⟩, D)",
        "PATTERN SEQ(A, ⟨SEQ(NOT B)⟩, C)",
    ],
)
def test_a_seq_of_nothing_but_not(query: str) -> None:
    check(query, "this SEQ has nothing but NOT: a match holds at least one event", "add a component that must happen")


# ------------------------------------------------------------------------------------ what is bound inside a NOT


@pytest.mark.parametrize(
    ("query", "name", "component"),
    [
        ("PATTERN SEQ((A a: a.id = ⟨b.id⟩), NOT SEQ(B b, C c), D d)", "b", "a"),
        ("PATTERN SEQ(A a, NOT B b, (C c: c.x > 1 AND c.x = ⟨b.x⟩ + 1))", "b", "c"),
        ("PATTERN SEQ(A a, NOT SEQ((B b: b.x = ⟨n.x⟩), NOT C n, D d), E e)", "n", "b"),
        ("PATTERN SEQ((A a: a.x = ⟨n.x⟩), NOT SEQ(B b, NOT C n, D d), E e)", "n", "a"),
        ("PATTERN SEQ((A a: count(⟨n[]⟩) > 1), NOT C+ n[])", "n", "a"),
    ],
)
def test_a_component_outside_a_not_that_uses_its_variable(query: str, name: str, component: str) -> None:
    error = refused(query)
    assert error.message == (
        f"'{name}' is a variable of a NOT: a component outside it, here '{component}', cannot refer to it"
    )
    assert error.hint is not None
    assert f" {name}: ...), or move it to WHERE: it then says which {name} must not happen" in error.hint


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("RETURN ⟨b.x⟩ PATTERN SEQ(A a, NOT B b)", "RETURN"),
        ("RETURN a.x, max(⟨b[].x⟩) PATTERN SEQ(A a, NOT B+ b[])", "RETURN"),
        ("RETURN COUNT(⟨b⟩) PATTERN SEQ(A a, NOT B b)", "RETURN"),
        ("RETURN COUNT(⟨B⟩) PATTERN SEQ(A a, NOT B b)", "RETURN"),
        ("RETURN COUNT(*) PATTERN SEQ(A a, NOT B b) HAVING MAX(⟨b.x⟩) > 1", "HAVING"),
        ("PATTERN SEQ(A a, NOT SEQ(C c, NOT B b)) RANK BY ⟨b.x⟩ LIMIT 3", "RANK BY"),
    ],
)
def test_a_result_that_uses_a_variable_of_a_not(query: str, clause: str) -> None:
    check(
        query,
        f"'b' is a variable of a NOT: there is no event of it in a match, so {clause} cannot use it",
        "leave it out, or make the component positive",
    )


@pytest.mark.parametrize(
    ("query", "name", "component"),
    [
        ("PATTERN SEQ(A a, NOT B b, C c, NOT (D d: d.x = ⟨b.x⟩), E e)", "b", "d"),
        ("PATTERN SEQ(A a, NOT (B b: b.x = ⟨d.x⟩), NOT D d, E e)", "d", "b"),
        ("PATTERN SEQ(A a, NOT SEQ(B b, NOT C c, D d), NOT (F f: f.x = ⟨c.x⟩), E e)", "c", "f"),
        ("PATTERN SEQ(A a, NOT SEQ(B b, NOT (C c: c.x = ⟨f.x⟩), D d), NOT F f, E e)", "f", "c"),
    ],
)
def test_a_component_of_a_not_that_uses_a_variable_of_another(query: str, name: str, component: str) -> None:
    check(
        query,
        f"'{name}' is a variable of another NOT than '{component}': a NOT sees its own variables and those of the "
        f"patterns around it",
        "each NOT is tested on its own: compare with a component outside of both, or put one NOT into the other",
    )


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("PATTERN SEQ(A a, NOT B b, C c, NOT D d, E e) WHERE ⟨b.x = d.x⟩", "b", "d"),
        ("PATTERN SEQ(A a, NOT B b, C c, NOT D d, E e) WHERE a.x = 1 AND ⟨a.x + d.x = b.x⟩", "b", "d"),
        ("PATTERN SEQ(A a, NOT SEQ(B b, NOT C c), NOT D d) WHERE ⟨c.x < d.x⟩", "c", "d"),
        ("PATTERN SEQ(A a, NOT SEQ(B b, NOT C c, F f, NOT D d)) WHERE ⟨b.x < c.x + d.x⟩", "c", "d"),
    ],
)
def test_a_conjunct_with_variables_of_two_nots(query: str, one: str, other: str) -> None:
    check(
        query,
        f"variables of two NOTs of which neither encloses the other: '{one}' and '{other}'",
        "each NOT is tested on its own; state a condition for each",
    )


def test_what_is_around_a_not_may_be_used_inside_it() -> None:
    plan = plan_of("PATTERN SEQ(A a, NOT SEQ((B b: b.x = c.x), NOT (D d: d.x = a.x AND d.x > b.x)), C c)")
    assert {(condition.text, condition.scope) for condition in plan.conditions} == {
        ("b.x = c.x", 1),
        ("d.x = a.x", 2),
        ("d.x > b.x", 2),
    }


def test_a_conjunct_of_where_goes_to_the_innermost_not_that_binds_its_variables() -> None:
    plan = plan_of("PATTERN SEQ(A a, NOT SEQ(B b, NOT D d), C c) WHERE b.x = c.x AND a.x = d.x AND b.x < d.x")
    assert [condition.scope for condition in plan.conditions] == [1, 2, 2]


def test_an_outer_component_may_use_a_variable_of_a_positive_inner_seq() -> None:
    (condition,) = plan_of("PATTERN SEQ(A r, B w, SEQ(C s, D d), (E o: o.id = d.id))").conditions
    assert (condition.text, condition.scope) == ("o.id = d.id", 0)


# -------------------------------------------------------------------------------------------- what EXISTS hides


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("RETURN ⟨b.x⟩ PATTERN EXISTS b (SEQ(A a, B b))", "RETURN"),
        ("RETURN COUNT(⟨b⟩) PATTERN EXISTS b (SEQ(A a, B b))", "RETURN"),
        ("RETURN COUNT(⟨B⟩) PATTERN EXISTS b (SEQ(A a, B b))", "RETURN"),
        ("RETURN COUNT(*) PATTERN SEQ(A a, EXISTS b (B b)) HAVING SUM(⟨b.x⟩) > 1", "HAVING"),
        ("PATTERN SEQ(A a, EXISTS b (B b)) RANK BY a.x + ⟨b.x⟩ LIMIT 3", "RANK BY"),
    ],
)
def test_a_result_that_uses_a_variable_of_exists(query: str, clause: str) -> None:
    check(
        query,
        f"'b' is bound by EXISTS and is not part of the result, so {clause} cannot use it",
        "leave EXISTS out to use the variable; conditions on it may stand in WHERE",
    )


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, EXISTS b (B b), (C c: c.x = ⟨b.x⟩))",
        "PATTERN SEQ((A c: c.x = ⟨b.x⟩), EXISTS b (SEQ(B b, C d)))",
        "PATTERN SEQ(A a, EXISTS b (B b), NOT (C c: c.x = ⟨b.x⟩), D d)",
        "PATTERN SEQ(A a, NOT SEQ(EXISTS b (B b), (C c: c.x = ⟨b.x⟩)), D d)",
    ],
)
def test_a_component_outside_an_exists_that_uses_its_variable(query: str) -> None:
    check(
        query,
        "'b' is bound by EXISTS: a component outside it, here 'c', cannot refer to it",
        "move the predicate to WHERE, or put both components into EXISTS b (...)",
    )


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN EXISTS b (SEQ(A a, B b, (C c: c.x = b.x)))",
        "PATTERN EXISTS b (SEQ(A a, B b, NOT (D d: d.x = b.x), C c))",
        "PATTERN SEQ(A a, EXISTS b ((B b: b.x = c.x)), C c)",
        "PATTERN SEQ(A a, EXISTS b (B b), C c) WHERE c.x = b.x",
        "PATTERN SEQ(A a, NOT SEQ(EXISTS b (B b), C c), D d) WHERE c.x = b.x",
        "PATTERN SEQ(EXISTS B (B), (B: B.x > 1), A a)",
        "PATTERN EXISTS b (EXISTS a (SEQ(A a, B b, (C c: c.x = b.x AND c.x = a.x))))",
    ],
)
def test_inside_an_exists_and_in_where_its_variable_may_be_used(query: str) -> None:
    assert plan_of(query).conditions


@pytest.mark.parametrize(
    ("query", "name", "hint"),
    [
        ("PATTERN ⟨EXISTS z (SEQ(A a, B b))⟩", "z", "there is 'a', 'b'"),
        ("PATTERN SEQ(⟨EXISTS c (A a)⟩, C c)", "c", "there is 'a'"),
        ("PATTERN SEQ(A a, NOT ⟨EXISTS z (B b)⟩, C c)", "z", "there is 'b'"),
        ("PATTERN SEQ(A a, NOT ⟨EXISTS a (B b)⟩, C c)", "a", "there is 'b'"),
        ("PATTERN SEQ(A a, NOT SEQ(B b, NOT ⟨EXISTS first (C fist)⟩), D d)", "first", "did you mean 'fist'?"),
    ],
)
def test_exists_names_what_its_pattern_does_not_bind(query: str, name: str, hint: str) -> None:
    check(query, f"EXISTS names '{name}', which its pattern does not bind", hint)


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN ⟨EXISTS b (SEQ(A a, NOT B b))⟩",
        "PATTERN SEQ(A a, NOT ⟨EXISTS b (SEQ(C c, NOT B b))⟩, D d)",
    ],
)
def test_exists_names_what_its_pattern_binds_only_inside_a_not(query: str) -> None:
    check(
        query,
        "EXISTS names 'b', which its pattern binds only inside a NOT: there is no event of it to leave out",
        "a variable of a NOT is not part of the result anyway",
    )


def test_only_what_the_whole_pattern_binds_is_hidden_from_the_result() -> None:
    assert plan_of("PATTERN SEQ(A a, NOT EXISTS b (SEQ(B b, C c)), EXISTS d (D d))").hidden == {"d"}


# --------------------------------------------------------------------------------------------- what nobody knows


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN SEQ(A a, (B b: b.x = ⟨z.x⟩))", "unknown variable 'z'", "there is 'a', 'b'"),
        ("PATTERN SEQ(A a, NOT (B b: b.x = ⟨z.x⟩), C c)", "unknown variable 'z'", "there is 'a', 'b', 'c'"),
        ("PATTERN SEQ(A order, B b) WHERE ⟨odrer.x⟩ = 1", "unknown variable 'odrer'", "did you mean 'order'?"),
        ("PATTERN SEQ(Shelf s, Exit e) WHERE ⟨Shelf.x⟩ = e.x", "unknown variable 'Shelf'", "of Shelf is 's'"),
        ("RETURN ⟨Exit.x⟩ PATTERN SEQ(Shelf s, Exit e)", "unknown variable 'Exit'", "of Exit is 'e'"),
        ("PATTERN SEQ(A a, NOT (B b: b.⟨prise⟩ = 1), C c)", "B has no attribute 'prise'", "did you mean 'price'?"),
        ("PATTERN SEQ(A a, EXISTS b ((B b: a.⟨prise⟩ = 1)))", "A has no attribute 'prise'", "did you mean 'price'?"),
    ],
)
def test_an_unknown_variable_or_attribute(query: str, message: str, hint: str) -> None:
    check(query, message, hint)


def test_an_unknown_variable_lists_what_its_component_may_use() -> None:
    error = refused("PATTERN SEQ(A a, NOT B b, EXISTS c (C c), (D d: d.x = ⟨z.x⟩))")
    assert error.hint == "there is 'a', 'd'"
