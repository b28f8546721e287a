"""The random queries that the engines are compared on are themselves sound: they bind, and they reach every feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.property.amounts import amount
from tests.property.strategies import ANY, NEXT, SCHEMA, Case, Knobs, cases

from trendloom.errors import BindError
from trendloom.frontend import tree
from trendloom.frontend.tql.parser import parse_query
from trendloom.frontend.tql.printer import write
from trendloom.logical.bind import bind
from trendloom.model.selection import Semantics

EVERYTHING = Knobs(outputs=("trends", "complete", "collapsed", "values", "aggregates", "ranked"), exists=True)
quick = settings(max_examples=amount(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(cases(EVERYTHING))
def test_text_survives_writing(case: Case) -> None:
    query = parse_query(case.query)
    assert parse_query(write(query)) == query


def negations(pattern: tree.Pattern) -> Iterator[tree.Not]:
    if isinstance(pattern, tree.Not):
        yield pattern
    elif isinstance(pattern, tree.Seq | tree.Or | tree.And):
        for part in pattern.parts:
            yield from negations(part)
    elif isinstance(pattern, tree.Repeat | tree.Exists | tree.OperandWithin):
        yield from negations(pattern.pattern)


@quick
@given(cases(Knobs(semantics=(NEXT,), outputs=("aggregates",), negation=False, windows=False, partitions=False)))
def test_knobs_are_obeyed(case: Case) -> None:
    query = parse_query(case.query)
    assert query.semantics is Semantics.NEXT
    assert isinstance(query.returns, tuple)
    assert query.within is None
    assert query.group_by == ()
    assert not list(negations(query.pattern))


@quick
@given(cases())
def test_streams_are_small_and_typed(case: Case) -> None:
    assert len(case.events) <= 9
    assert [event["id"] for event in case.events] == list(range(len(case.events)))
    assert case.table().column_names == list(SCHEMA.names)


def test_nearly_all_bind_and_every_feature_appears() -> None:
    seen: Counter[str] = Counter()
    features = ["SEQ(", "OR(", "AND(", "NOT ", "+", "*", "?", "{", "EXISTS", "NEXT(", "[i-1]", "[..i-1]", "[first]",
                "[]", "duration(", "GROUP BY", "[k]", "SLIDE", "WITHIN", "HAVING", "RANK BY", "COMPLETE", "COLLAPSED",
                "LIKE", "IS NULL", "BETWEEN", " IN (", ": "]  # fmt: skip

    @seed(7)
    @settings(quick, max_examples=400, phases=[Phase.generate], database=None)
    @given(cases(EVERYTHING))
    def collect(case: Case) -> None:
        seen["all"] += 1
        try:
            bind(parse_query(case.query), SCHEMA)
        except BindError:
            seen["refused"] += 1
        seen.update(feature for feature in features if feature in case.query)
        seen["any"] += ANY in case.query

    collect()
    assert seen["refused"] <= seen["all"] * 0.02
    assert not [feature for feature in features if not seen[feature]]
