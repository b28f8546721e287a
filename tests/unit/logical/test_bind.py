"""What the binder makes of a query: positions, scopes, conditions, windows, outputs, warnings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from trendloom.errors import QueryWarning
from trendloom.expr.nodes import Attribute, Constant, Group, Total, Which, walk
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.plan import Aggregation, Plan, Projection
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis, Window
from trendloom.pattern.algebra import Atom, Both, Either, Kleene, Maybe, Negation, Round, Sequence, atoms

KINDS = {"id": Kind.STRING, "type": Kind.STRING, "time": Kind.INT, "x": Kind.INT, "y": Kind.FLOAT, "g": Kind.STRING}
COLUMNS = tuple(Column(name, kind) for name, kind in KINDS.items())
SCHEMA = Schema(COLUMNS)


def plan_of(query: str, schema: Schema = SCHEMA) -> Plan:
    return bind(parse_query(query), schema)


class TestPattern:
    def test_repetitions_are_unrolled(self) -> None:
        assert plan_of("PATTERN A a{2,3}").pattern == Sequence(
            (Round(0, Atom(0, "A", "a")), Round(1, Atom(1, "A", "a")), Maybe(Round(2, Atom(2, "A", "a"))))
        )
        assert plan_of("PATTERN A{2,}").pattern == Sequence((Round(0, Atom(0, "A", "A")), Kleene(1, Atom(1, "A", "A"))))

    def test_star_and_option(self) -> None:
        assert plan_of("PATTERN A*").pattern == Maybe(Kleene(0, Atom(0, "A", "A")))
        assert plan_of("PATTERN A{0,}").pattern == plan_of("PATTERN A*").pattern
        assert plan_of("PATTERN A?").pattern == Maybe(Atom(0, "A", "A"))

    def test_operators(self) -> None:
        assert isinstance(plan_of("PATTERN A OR B").pattern, Either)
        assert isinstance(plan_of("PATTERN AND(A, B)").pattern, Both)

    def test_every_not_is_a_scope(self) -> None:
        pattern = plan_of("PATTERN SEQ(A, NOT SEQ(B, NOT C, D), NOT E, F)").pattern
        scopes = [node.scope for node in _negations(pattern)]
        assert scopes == [1, 2, 3]

    def test_copies_have_scopes_of_their_own(self) -> None:
        pattern = plan_of("PATTERN (SEQ(A, NOT X, B)){2}").pattern
        assert [node.scope for node in _negations(pattern)] == [1, 2]
        assert [atom.position for atom in atoms(pattern)] == list(range(6))

    def test_variables_that_bind_several_events(self) -> None:
        assert plan_of("PATTERN SEQ(A+ a[], B b, C, C)").kleene == {"a", "C"}


def _negations(pattern: object) -> list[Negation]:
    from trendloom.pattern.algebra import walk as parts

    return [node for node in parts(pattern) if isinstance(node, Negation)]  # type: ignore[arg-type]


class TestConditions:
    def test_conjuncts_are_the_operands_of_and(self) -> None:
        plan = plan_of("PATTERN A a WHERE a.x > 1 AND (a.x < 5 AND a.y > 0) AND NOT (a.x = 3 AND a.y = 1)")
        assert [condition.text for condition in plan.conditions] == [
            "a.x > 1", "a.x < 5", "a.y > 0", "NOT (a.x = 3 AND a.y = 1)",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("where", "scopes"),
        [
            ("a.x = 1", [0]),
            ("n.x = 1", [1]),
            ("n.x = a.x", [1]),
            ("m.x = n.x", [2]),
            ("m.x = a.x", [2]),
            ("1 = 1", [0]),
        ],
    )
    def test_a_conjunct_restricts_the_scope_of_its_variables(self, where: str, scopes: list[int]) -> None:
        plan = plan_of(f"PATTERN SEQ(A a, NOT SEQ(B n, NOT C m, D), E) WHERE {where}")
        assert [condition.scope for condition in plan.conditions] == scopes

    def test_an_unnamed_type_in_and_outside_a_not(self) -> None:
        plan = plan_of("PATTERN SEQ(A, NOT A, B) WHERE A.x > 1")
        assert [condition.scope for condition in plan.conditions] == [0, 1]

    @pytest.mark.parametrize(
        ("pattern", "part"),
        [
            ("SEQ(A a, (B b: b.x = a.x))", None),
            ("(SEQ(A a, (B b: b.x = a.x)))+", 0),
            ("SEQ(A a, (B b: b.x = a.x)+)", None),
            ("(SEQ(A a, (B b: b.x > 1)+))+", 1),
            ("(SEQ(A a, (B b: b.x = a.x)+))+", 0),
        ],
    )
    def test_an_attached_predicate_speaks_of_one_round(self, pattern: str, part: int | None) -> None:
        assert [condition.part for condition in plan_of(f"PATTERN {pattern}").conditions] == [part]

    def test_which_event_an_attribute_is_of(self) -> None:
        def which(where: str) -> set[Which]:
            (condition,) = plan_of(f"PATTERN SEQ(A+ a[], B b) WHERE {where}").conditions
            return {node.which for node in walk(condition.expr) if isinstance(node, Attribute)}

        assert which("a.x < b.x") == {Which.EACH}
        assert which("a.x < NEXT(b).x") == {Which.EACH, Which.NEXT}
        assert which("a[i].x < a[i-1].x") == {Which.CURRENT, Which.PREVIOUS}
        assert which("a[first].x < a[last].x") == {Which.FIRST, Which.LAST}

    def test_time_is_always_the_time_column(self) -> None:
        schema = Schema((*COLUMNS[:2], Column("when", Kind.INT)), time="when")
        (condition,) = plan_of("PATTERN A a WHERE a.time > 5", schema).conditions
        assert Attribute("a", Which.EACH, "when", Kind.INT) in walk(condition.expr)


class TestPartition:
    def test_equivalence_then_groups(self) -> None:
        plan = plan_of("PATTERN A WHERE [x, g] AND [x] GROUP BY id, g")
        assert plan.partition == ("x", "g", "id")
        assert plan.group_by == ("id", "g")


class TestWindow:
    @pytest.mark.parametrize(
        ("clauses", "window"),
        [
            ("", Window()),
            ("WITHIN 10", Window(10)),
            ("WITHIN 2 minutes", Window(120)),
            ("WITHIN 1.5 min SLIDE 30 s", Window(90, 30)),
            ("RETURN COUNT(*) WITHIN 1 h", Window(3600, 3600)),
            ("RETURN COUNT(*) WITHIN 1 h SLIDE 1 d", Window(3600, 86400)),
        ],
    )
    def test_in_ticks(self, clauses: str, window: Window) -> None:
        assert plan_of(f"PATTERN A {clauses}").window == window

    def test_timestamps_count_microseconds(self) -> None:
        schema = Schema(COLUMNS, axis=TimeAxis.timestamps())
        assert plan_of("PATTERN A WITHIN 1 ms", schema).window == Window(1000)

    def test_other_units(self) -> None:
        schema = Schema(COLUMNS, axis=TimeAxis.integer("ms"))
        assert plan_of("PATTERN A WITHIN 2 s", schema).window == Window(2000)
        assert plan_of("PATTERN A WITHIN 2", schema).window == Window(2)

    def test_durations_in_conditions(self) -> None:
        (condition,) = plan_of("PATTERN SEQ(A a, B b) WHERE b.time - a.time < 2 min").conditions
        assert Constant(120, Kind.INT) in walk(condition.expr)


class TestOutput:
    def test_values_are_named_by_their_text(self) -> None:
        output = plan_of("RETURN a.x, avg(b[].y) AS mean, a.x + 1 PATTERN SEQ(A a, B+ b[])").output
        assert isinstance(output, Projection)
        assert [(value.name, value.kind) for value in output.values] == [
            ("a.x", Kind.INT), ("mean", Kind.FLOAT), ("a.x + 1", Kind.INT),
        ]  # fmt: skip

    def test_keys_are_given_anyway(self) -> None:
        output = plan_of("RETURN g, COUNT(*) PATTERN A GROUP BY g").output
        assert isinstance(output, Aggregation)
        assert [value.name for value in output.values] == ["COUNT(*)"]
        named = plan_of("RETURN g AS sector, COUNT(*) PATTERN A GROUP BY g").output
        assert isinstance(named, Aggregation)
        assert named.values[0].expr == Group("g", Kind.STRING)

    @pytest.mark.parametrize(("of", "positions"), [("a", (0,)), ("A", (0, 2)), ("b", (1,)), ("B", (1,))])
    def test_totals_of_variables_and_types(self, of: str, positions: tuple[int, ...]) -> None:
        output = plan_of(f"RETURN SUM({of}.x) PATTERN SEQ(A a, B b, A c)").output
        assert isinstance(output, Aggregation)
        total = output.values[0].expr
        assert isinstance(total, Total)
        assert total.positions == positions

    def test_a_type_inside_a_not_is_not_counted(self) -> None:
        output = plan_of("RETURN COUNT(A) PATTERN SEQ(A a, NOT A x, B b)").output
        assert isinstance(output, Aggregation)
        assert output.values[0].expr.positions == (0,)  # type: ignore[union-attr]

    def test_having_may_name_a_column_of_return(self) -> None:
        plan = plan_of("PATTERN A a RETURN g, COUNT(*) AS n, SUM(a.x) + 1 AS x GROUP BY g HAVING n > 300 AND x < 5")
        assert isinstance(plan.output, Aggregation)
        written = plan_of("PATTERN A a RETURN g, COUNT(*) GROUP BY g HAVING COUNT(*) > 300 AND SUM(a.x) + 1 < 5")
        assert isinstance(written.output, Aggregation)
        assert plan.output.having == written.output.having

    def test_hidden_variables(self) -> None:
        assert plan_of("PATTERN EXISTS b (SEQ(A a, B b))").hidden == {"b"}

    def test_ranking_and_confidence(self) -> None:
        ranking = plan_of("PATTERN SEQ(A a, B b) RANK BY a.x + b.x DESC LIMIT 3").ranking
        assert ranking is not None
        assert (ranking.descending, ranking.limit, ranking.merge) == (True, 3, None)
        imprecise = Schema(
            (*COLUMNS[:2], Column("lo", Kind.INT), Column("hi", Kind.INT)), imprecision=Imprecision("lo", "hi")
        )
        assert plan_of("PATTERN A CONFIDENCE >= 0.25", imprecise).confidence == Fraction(1, 4)


class TestNulls:
    """A column whose values are all NULL is accepted wherever a column is."""

    SCHEMA = Schema((*COLUMNS, Column("none", Kind.NULL)))

    @pytest.mark.parametrize(
        "query",
        [
            "PATTERN A a WHERE a.none = 1",
            "PATTERN A a WHERE a.none LIKE 'q%'",
            "PATTERN A a WHERE a.none",
            "PATTERN A a WHERE a.none < a.time AND a.none = a.g",
            "PATTERN A a WHERE [none]",
            "RETURN SUM(A.none), MIN(A.none), AVG(A.none) PATTERN A",
            "RETURN a.none + 1 AS b, lower(a.none), abs(a.none) PATTERN A a",
            "PATTERN A a RANK BY a.none LIMIT 1",
        ],
    )
    def test_it_fits(self, query: str) -> None:
        plan_of(query, self.SCHEMA)


class TestWarnings:
    def warnings(self, query: str, schema: Schema = SCHEMA) -> tuple[QueryWarning, ...]:
        return plan_of(query, schema).warnings

    def test_ambiguity(self) -> None:
        (warning,) = self.warnings("PATTERN SEQ(A+, A+)")
        assert "the events A A A match it in more than one way" in warning.message

    def test_next_that_never_applies(self) -> None:
        (warning,) = self.warnings("PATTERN SEQ(A a, B b, C c)\nWHERE a.x < NEXT(c).x")
        assert "'a.x < NEXT(c).x' is always true" in warning.message
        assert warning.span is not None
        assert warning.span.line == 2
        assert self.warnings("PATTERN SEQ(A a, B b?, C c) WHERE a.x < NEXT(c).x") == ()

    def test_next_inside_a_not(self) -> None:
        assert self.warnings("PATTERN SEQ(A a, NOT SEQ(B b, C c), D d) WHERE b.x < NEXT(c).x") == ()
        assert len(self.warnings("PATTERN SEQ(A a, NOT SEQ(B b, C c), D d) WHERE c.x < NEXT(b).x")) == 1

    def test_types_without_events(self) -> None:
        schema = Schema(COLUMNS, present=frozenset({"Trade"}))
        (warning,) = self.warnings("PATTERN SEQ(Trade, Trad t, NOT Trad)", schema)
        assert warning.message == "the events have no type 'Trad'"
        assert warning.hint == "did you mean 'Trade'?"

    @pytest.mark.parametrize(
        ("value", "inside", "capitals"),
        [
            ("sum(b.x)", "sum(b[].x)", "SUM(b.x)"),
            ("count(b)", "count(b[])", "COUNT(b)"),
            ("1 + max( b.x )", "max(b[].x)", "MAX(b.x)"),
        ],
    )
    def test_an_aggregate_in_small_letters_beside_within(self, value: str, inside: str, capitals: str) -> None:
        query = f"PATTERN SEQ(A a, B+ b[])\nRETURN {value}\nWITHIN 1 h"
        (warning,) = plan_of(query).warnings
        assert "is over all matches, so each row is of a window of 1 h" in warning.message
        assert warning.hint == f"of one match: {inside}; over all matches, in capitals: {capitals}"
        assert warning.span is not None
        assert warning.span.line == 2
        assert f"'{value.removeprefix('1 + ')}'" in warning.message

    @pytest.mark.parametrize(
        "clauses",
        [
            "RETURN SUM(b.x) WITHIN 1 h",  # in capitals: meant
            "RETURN sum(b.x) WITHIN 1 h SLIDE 1 min",  # windows are meant
            "RETURN sum(b.x)",
            "RETURN sum(b[].x) WITHIN 1 h",
            "RETURN sum(a.x) WITHIN 1 h",  # a binds one event: a.x would be the value of one match
            "RETURN COUNT(*) WITHIN 1 h",
        ],
    )
    def test_other_aggregates_are_meant(self, clauses: str) -> None:
        assert plan_of(f"PATTERN SEQ(A a, B+ b[]) {clauses}").warnings == ()

    def test_nothing_to_say(self) -> None:
        assert self.warnings("PATTERN (SEQ(A+, B))+ WHERE A.x < NEXT(A).x WITHIN 10") == ()
