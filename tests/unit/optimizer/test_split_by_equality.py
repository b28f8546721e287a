"""Events are kept apart by what conditions make equal in every match: when, and that no answer changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, at_least, thorough
from tests.property.compare import rows_of
from tests.property.strategies import ANY, CONTIGUOUS, NEXT, SCHEMA, to_table

import trendloom as tl
from trendloom.engines import local
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.model.schema import Column, Kind, Schema
from trendloom.optimizer import RULES, optimize
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.planner.plan import choose


def after(query: str, schema: Schema = SCHEMA) -> Plan:
    return split_by_equality(bind(parse_query(query), schema))


SPLIT = [
    ("PATTERN SEQ(A a, B b) WHERE a.k = b.k", "k", []),
    ("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND a.x < b.x", "k", ["a.x < b.x"]),
    ("PATTERN SEQ(A a, B b, C c) WHERE c.k = b.k AND c.k = a.k AND a.k = b.k", "k", []),
    ("PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.g = b.g", "k g", []),
    ("PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.y = b.y", "k y", []),
    ("PATTERN SEQ(A a, B b) WHERE [g] AND a.k = b.k", "k", []),
    ("PATTERN SEQ(A a, B+ b[]) WHERE a.k = b.k", "k", []),
    ("PATTERN SEQ(A+ a[], B b) WHERE a.k = b.k", "k", []),
    ("PATTERN (SEQ(A a, B b))+ WHERE a.k = b.k", "k", []),
    ("PATTERN AND(A a, B b) WHERE a.k = b.k", "k", []),
    ("PATTERN SEQ(A a, (B b: b.k = a.k)+)", "k", []),
    ("PATTERN SEQ(A, B, A) WHERE A.k = B.k", "k", []),
    ("PATTERN SEQ(A a, NOT (C c: c.k = b.k), B b) WHERE a.k = b.k", "k", []),
    ("PATTERN SEQ(A a, B b, NOT C c) WHERE a.k = b.k AND c.k = a.k WITHIN 5", "k", []),
    ("PATTERN SEQ(A a, NOT SEQ((C c: c.k = b.k), (A d: d.k = c.k)), B b) WHERE a.k = b.k", "k", []),
    ("PATTERN SEQ(A a, NOT SEQ(C c, NOT (A e: e.k = a.k), A d), B b) WHERE a.k = b.k AND c.k = d.k AND d.k = b.k", "k",
     []),
    ("PATTERN SEQ(A a, NOT SEQ(C c, D+ d[]), B b) WHERE a.k = b.k AND c.k = d.k AND d.k = b.k", "k", []),
    ("RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[]) WHERE a.k = b.k", "k", []),
    ("RETURN COMPLETE TRENDS PATTERN SEQ(A+ a[], B+ b[]) WHERE a.k = b.k", "k", []),
    (f"PATTERN SEQ(A a, B b, C c) SEMANTICS {NEXT} WHERE a.k = b.k AND b.k = c.k", "k", []),
    (f"PATTERN SEQ(A a, B+ b[], C c) SEMANTICS {NEXT} WHERE a.k = b.k AND a.k = c.k", "k", []),
    (f"PATTERN SEQ(A+ a[], B b) SEMANTICS {NEXT} WHERE a[i].k = a[i-1].k AND a.k = b.k", "k", []),
    (f"PATTERN SEQ(A a, NOT C c, B b) SEMANTICS {NEXT} WHERE a.k = b.k AND c.k = b.k", "k", []),
]  # fmt: skip

WHOLE = [
    ("nothing equal", "PATTERN SEQ(A a, B b) WHERE a.k < b.k"),
    ("two columns", "PATTERN SEQ(A a, B b) WHERE a.k = b.x"),
    ("arithmetic", "PATTERN SEQ(A a, B b) WHERE a.k = b.k + 0"),
    ("either", "PATTERN SEQ(A a, B b) WHERE a.k = b.k OR a.x = 1"),
    ("one variable alone", "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k"),
    ("two classes", "PATTERN SEQ(A a, B b, C c, D d) WHERE a.k = b.k AND c.k = d.k"),
    ("a NOT alone", "PATTERN SEQ(A a, NOT C c, B b) WHERE a.k = b.k"),
    ("a NOT with itself", "PATTERN SEQ(A a, NOT SEQ(C c, D d), B b) WHERE a.k = b.k AND c.k = d.k"),
    ("an equality in a NOT", "PATTERN SEQ(A a, NOT (C c: c.k = a.k AND a.k = b.k), B b)"),
    ("NULL may be matched", "PATTERN SEQ(A a, NOT (C c: c.k = a.k))"),
    ("one event may have NULL", "PATTERN A+ a[] WHERE a[i].k = a[i-1].k"),
    ("optional", "PATTERN SEQ(A a, B b?, C c) WHERE a.k = b.k AND b.k = c.k"),
    ("optional in a NOT", "PATTERN SEQ(A a, NOT SEQ(C c, D d?), B b) WHERE a.k = b.k AND c.k = b.k AND d.k = c.k"),
    ("or", "PATTERN SEQ(A a, OR(B b, C c)) WHERE a.k = b.k AND a.k = c.k"),
    ("rounds", "PATTERN (SEQ(A a, (B b: b.k = a.k)))+"),
    ("adjacent events", "PATTERN SEQ(A a, B+ b[]) WHERE a.k = NEXT(b).k"),
    ("first event", "PATTERN SEQ(A a, B+ b[]) WHERE a.k = b[first].k"),
    ("contiguous", f"PATTERN SEQ(A a, B b) SEMANTICS {CONTIGUOUS} WHERE a.k = b.k"),
    ("next, with a later one", f"PATTERN SEQ(A a, B b, C c) SEMANTICS {NEXT} WHERE a.k = c.k AND b.k = c.k"),
    ("next, the first repeated", f"PATTERN SEQ(A+ a[], B b) SEMANTICS {NEXT} WHERE a.k = b.k"),
    ("collapsed", "RETURN COLLAPSED TRENDS PATTERN SEQ(A+ a[], B+ b[]) WHERE a.k = b.k"),
    ("ranked", "PATTERN SEQ(A a, B b) WHERE a.k = b.k RANK BY a.x LIMIT 2"),
    ("time", "PATTERN SEQ(A a, B b) WHERE a.time = b.time"),
    ("type", "PATTERN SEQ(A a, A b) WHERE a.type = b.type"),
    ("a key already", "PATTERN SEQ(A a, B b) WHERE [k] AND a.k = b.k"),
]


@pytest.mark.parametrize(("query", "split", "kept"), SPLIT)
def test_before_and_after(query: str, split: str, kept: list[str]) -> None:
    plan = after(query)
    assert (" ".join(plan.split), [condition.text for condition in plan.conditions]) == (split, kept)
    assert plan.keys == (*plan.partition, *plan.split)


@pytest.mark.parametrize(("reason", "query"), WHOLE, ids=[reason for reason, _ in WHOLE])
def test_left_alone(reason: str, query: str) -> None:
    assert after(query) == bind(parse_query(query), SCHEMA), reason


def test_what_cannot_be_compared_or_is_ordered_is_left_alone() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.k = b.k"
    assert not after(query, Schema(SCHEMA.columns, order=("x",))).split
    other = Schema(tuple(Column(c.name, Kind.OTHER if c.name == "k" else c.kind) for c in SCHEMA.columns))
    assert not split_by_equality(_with_schema(bind(parse_query(query), SCHEMA), other)).split


def _with_schema(plan: Plan, schema: Schema) -> Plan:
    return Plan(**{**{name: getattr(plan, name) for name in plan.__dataclass_fields__}, "schema": schema})


def test_explain_shows_the_split() -> None:
    shown = tl.explain("PATTERN SEQ(A a, B b) WHERE a.k = b.k", to_table([]).schema, engine="local")
    assert "split by k  every event of a match has the same k" in shown
    assert "sort by k and time" in shown
    shown = tl.explain("PATTERN SEQ(A a, B b) WHERE a.k = b.k", to_table([]).schema, engine="spark")
    assert "repartition by k" in shown


# --------------------------------------------------------------------------------- no answer changes

PATTERNS = [
    "SEQ(A a, B b)", "SEQ(A a, B b, C c)", "SEQ(A a, A b)", "SEQ(A a, B+ b[])", "SEQ(A+ a[], B b)",
    "SEQ(A+ a[], B+ b[])", "(SEQ(A a, B b))+", "SEQ(A a, B b?, C c)", "SEQ(A a, OR(B b, C c))", "AND(A a, B b)",
    "SEQ(A a, NOT C c, B b)", "SEQ(A a, NOT SEQ(C c, A d), B b)", "SEQ(NOT C c, A a, B b)", "SEQ(A a, B b, NOT C c)",
    "SEQ(A a, NOT SEQ(C c, NOT A d, C e), B b)", "SEQ(A a, B b{1,2}, C c)", "SEQ(A a, NOT SEQ(C c, A+ d[]), B b)",
    "(SEQ(A a, NOT C c, B b))+", "SEQ(A a, NOT C c)", "A+ a[]",
]  # fmt: skip
OUTPUTS = ["TRENDS", "COMPLETE TRENDS", "COLLAPSED TRENDS", "a_.id AS n", "COUNT(*), COUNT(A), SUM(A.x), MAX(A.y)",
           "g, COUNT(*), SUM(A.x)"]  # fmt: skip
EXAMPLES = amount(60)


@dataclass(frozen=True)
class Case:
    query: str
    events: list[dict[str, Any]]


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    pattern = draw(st.sampled_from(PATTERNS))
    names = [name for name in "abcde" if f" {name}" in pattern]
    kleene = [name for name in names if f"{name}[]" in pattern]
    column = draw(st.sampled_from("kkkgy"))
    tests = [f"{x}.{column} = {y}.{column}" for x, y in pairwise(names)]
    tests = [draw(st.sampled_from([test, test, test, f"{names[0]}.{column} = {test[0]}.{column}"])) for test in tests]
    tests += [f"{n}[i].{column} = {n}[i-1].{column}" for n in kleene if draw(st.booleans())]
    tests += draw(st.sampled_from([[], [], [f"{names[0]}.x <= {names[-1]}.x"], [f"{names[0]}.x > 0"]]))
    semantics = draw(st.sampled_from([ANY, ANY, NEXT]))
    output = draw(st.sampled_from(OUTPUTS if semantics == ANY else ["TRENDS", *OUTPUTS[4:]]))
    output = output.replace("a_", "a[first]" if "a" in kleene or pattern.startswith("(") else "a")
    where = draw(st.sampled_from([[], [], ["[g]"]])) + [test for test in tests if test.split(".")[0] != test[-3:-2]]
    query = f"RETURN {output} PATTERN {pattern} SEMANTICS {semantics}"
    query += f" WHERE {' AND '.join(where)}" if where else ""
    query += " GROUP BY g" if output.startswith("g,") else ""
    query += draw(st.sampled_from(["", " WITHIN 6", " WITHIN 6 SLIDE 3"]))
    row = st.tuples(st.sampled_from("AABBC"), st.integers(0, 2), _KEYS, _KEYS, _DOUBLES)
    rows = draw(st.lists(row, min_size=4, max_size=12))
    events = [
        {"id": n, "type": kind, "time": time, "x": n % 3, "y": y, "g": None if g is None else "uvw"[g], "k": k}
        for n, ((kind, step, k, g, y), time) in enumerate(zip(rows, _times(rows), strict=True))
    ]
    return Case(query, events)


_KEYS = st.sampled_from([0, 0, 0, 1, 1, None])
_DOUBLES = st.sampled_from([0.0, -0.0, 1.5, None])


def _times(rows: list[Any]) -> list[int]:
    times, time = [], 0
    for row in rows:
        time += row[1]
        times.append(time)
    return times


def _executed(plan: Plan, table: pa.Table) -> pa.Table:
    return pa.Table.from_batches(list(local.run(choose(plan), prepare(table))))


@pytest.mark.filterwarnings("ignore::UserWarning")  # of types that a small stream lacks
def test_the_answer_stays() -> None:
    compared, split, with_rows = 0, 0, 0

    @thorough(EXAMPLES)
    @given(_cases())
    def compare(case: Case) -> None:
        nonlocal compared, split, with_rows
        table = to_table(case.events)
        try:
            plan = bind(parse_query(case.query), prepare(table).schema)
        except tl.errors.BindError:
            return
        expected = tl.run(case.query, table, engine="reference")
        optimized = optimize(plan)
        assert split_by_equality in RULES
        found, whole = _executed(optimized, table), _executed(optimize(plan, without=(split_by_equality,)), table)
        assert rows_of(found) == rows_of(expected), case.query
        assert rows_of(whole) == rows_of(expected), case.query
        assert _ends(found) == _ends(whole), case.query
        compared += 1
        split += bool(optimized.split)
        with_rows += bool(optimized.split) and len(found) > 0

    compare()
    assert compared >= 0.8 * EXAMPLES
    assert split >= at_least(0.35, EXAMPLES)
    assert with_rows >= at_least(0.05, EXAMPLES)


def _ends(table: pa.Table) -> list[Any]:
    """Rows in their order, by what decides it."""
    if "events" not in table.column_names:
        return []
    both = [(row, row["events"]) for row in table.to_pylist()]
    return [(row.get("window_start"), row.get("g"), found[0]["time"], found[-1]["time"]) for row, found in both]
