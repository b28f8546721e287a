"""The search against the definitions in their shortest form: sets of bindings, built part by part.

`denote` is what a match under skip-till-any-match is, literally: a set for every part of the pattern, no growing, no
shortcuts. It is far too slow for use, and that is its merit. AND is compared as well, without NOT inside.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from tests.property.amounts import rounds

from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.pattern.algebra import Atom, Both, Either, Kleene, Maybe, Negation, Pattern, Round, Sequence
from trendloom.reference.evaluate import evaluate
from trendloom.reference.matches import Search
from trendloom.reference.stream import StepBudget, Stream, ordered, read_event

SCHEMA = Schema((Column("time", Kind.INT), Column("type", Kind.STRING), Column("v", Kind.INT)))

Item = tuple[object, object]  # (event, atom) or (None, negation)
Term = tuple[Item, ...]
"""A binding with the NOTs at their places in it."""


def events_in(term: Term) -> list:
    return [event for event, _ in term if event is not None]


def before(left: Term, right: Term) -> bool:
    return all(first.instant < second.instant for first in events_in(left) for second in events_in(right))


def joined(lefts: set[Term], rights: set[Term]) -> set[Term]:
    return {left + right for left in lefts for right in rights if before(left, right)}


def denote(pattern: Pattern, stream: Stream) -> set[Term]:
    """The bindings of a pattern, and whatever of NOTs alone stands for nothing."""
    if isinstance(pattern, Atom):
        return {((event, pattern),) for event in stream if event.type == pattern.type}
    if isinstance(pattern, Negation):
        return {((None, pattern),)}
    if isinstance(pattern, Round):
        return denote(pattern.body, stream)
    if isinstance(pattern, Maybe):
        return {()} | {term for term in denote(pattern.body, stream) if events_in(term)}
    if isinstance(pattern, Either):
        return set().union(*(denote(part, stream) for part in pattern.parts))
    if isinstance(pattern, Sequence):
        terms: set[Term] = {()}
        for part in pattern.parts:
            terms = joined(terms, denote(part, stream))
        return terms
    if isinstance(pattern, Kleene):
        once = denote(pattern.body, stream)
        bindings = {term for term in once if events_in(term)}
        found, new = set(once), bindings
        while new:
            new = joined(new, bindings) - found
            found |= new
        return found
    assert isinstance(pattern, Both)
    return {term for term in merged([denote(part, stream) for part in pattern.parts]) if events_in(term)}


def merged(branches: list[set[Term]]) -> set[Term]:
    found = set()
    for terms in itertools.product(*branches):
        items = [item for term in terms for item in term]
        if len({event for event, _ in items}) == len(items):
            found.add(tuple(sorted(items, key=lambda item: (item[0].instant, item[1].position))))
    return found


def is_match(term: Term, stream: Stream) -> bool:
    for place, (event, part) in enumerate(term):
        if event is not None:
            continue
        past, future = events_in(term[:place]), events_in(term[place + 1 :])
        between = tuple(
            event
            for event in stream
            if (not past or past[-1].instant < event.instant) and (not future or event.instant < future[0].instant)
        )
        if matches(part.body, between):
            return False
    return bool(events_in(term))


def matches(pattern: Pattern, stream: Stream) -> set[Term]:
    passing = (term for term in denote(pattern, stream) if is_match(term, stream))
    return {tuple(item for item in term if item[0] is not None) for term in passing}


def random_pattern(chance: random.Random, depth: int, *, negation: bool, conjunction: bool) -> str:
    form = chance.choice(["atom", "atom", "seq", "seq", "repeat", "or", "and" if conjunction else "seq"])
    if depth == 0 or form == "atom":
        return chance.choice("ABC")

    def inner() -> str:
        return random_pattern(chance, depth - 1, negation=negation, conjunction=conjunction)

    if form == "repeat":
        return f"({inner()}){chance.choice(['+', '+', '*', '?', '{2}', '{0,2}', '{2,}'])}"
    if form == "seq":
        parts = [inner() for _ in range(chance.randint(1, 3))]
        if negation and chance.random() < 0.7:
            parts.insert(chance.randint(0, len(parts)), f"NOT ({inner()})")
        return f"SEQ({', '.join(parts)})"
    return f"{form.upper()}({inner()}, {inner()})"


def random_stream(chance: random.Random, size: int, schema: Schema = SCHEMA) -> Stream:
    last = 3 if schema.order else 6
    rows = [
        {"time": chance.randint(1, last), "type": chance.choice("ABC"), "v": chance.randint(0, 2)} for _ in range(size)
    ]
    return ordered(read_event(number, row, schema) for number, row in enumerate(rows))


@pytest.mark.parametrize("form", ["plain", "negation", "conjunction"])
@pytest.mark.parametrize("order", [(), ("v",)])
@pytest.mark.parametrize("seed", range(rounds(25)))
def test_search_finds_what_the_definition_says(seed, order, form):
    chance, schema = random.Random(f"{seed} {form}"), replace(SCHEMA, order=order)
    pattern = random_pattern(chance, 3, negation=form == "negation", conjunction=form == "conjunction")
    stream = random_stream(chance, 6, schema)
    plan = bind(parse_query(f"PATTERN {pattern}"), schema)
    found = list(Search(plan, StepBudget()).matches(stream))
    assert len(found) == len(set(found)), f"{pattern} gives a binding twice"
    assert set(found) == matches(plan.pattern, stream), pattern


CONDITIONS = [
    "a.v < b.v", "a.v <= NEXT(a).v", "a.v < NEXT(b).v", "b[i].v >= b[i-1].v", "b[i].v > avg(b[..i-1].v)",
    "a[first].v < b[last].v", "count(b[]) > 1", "x.v = a.v", "x.v < b.v AND x.v > 0", "a.v = c.v", "b.v != count(a[])",
]  # fmt: skip
PATTERNS = [
    "SEQ(A a+, B b+)", "(SEQ(A a, B b))+", "SEQ(A a+, NOT C x, B b+, C c?)", "SEQ(A a, NOT SEQ(B y, C x), B b*)",
    "AND(SEQ(A a, NOT C x, B b), C c)", "(OR(A a, SEQ(NOT C x, B b+)))+", "SEQ(NOT C x, A a, AND(B b+, C c?))",
    "(SEQ(A a, (B b: b.v >= a.v)+))+", "(SEQ(A a, NOT (C x: x.v = a.v), (B b: b.v = a.v)?))+",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(rounds(50)))
def test_shortcuts_change_nothing(seed):
    chance = random.Random(seed)
    pattern = chance.choice(PATTERNS)
    known = [
        text
        for text in CONDITIONS
        if all(f" {name}" in pattern for name in "abcx" if f"{name}." in text or f"{name}[" in text)
    ]
    where = " AND ".join(chance.sample(known, min(2, len(known))))
    window = chance.choice(["", "WITHIN 4", "WITHIN 4 SLIDE 2"])
    plan = bind(parse_query(f"PATTERN {pattern} {'WHERE ' + where if where else ''} {window}"), SCHEMA)
    rows = [dict(event.values) for event in random_stream(chance, 8)]
    assert evaluate(plan, rows) == evaluate(plan, rows, prune=False)
