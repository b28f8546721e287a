"""Random queries with random streams, to compare engines with the reference: every feature, nothing large.

Use `cases()` for pairs, or `queries()` and `streams()` alone; `Knobs` says which features take part. Queries are valid
by construction but for rare slips, which the binder refuses: a test assumes that the query binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.property.strategies_conditions import CLASSES, attached, conjuncts
from tests.property.strategies_patterns import (
    TYPES,
    Allowed,
    Variable,
    named,
    nested_negations,
    rebuilt,
    rivals,
    skeletons,
    variables_of,
)

from trendloom.frontend.tql.parser import parse_expression, parse_query
from trendloom.frontend.tql.printer import write_pattern
from trendloom.frontend.tree import Event, Exists, Pattern
from trendloom.model.schema import Column, Kind, Schema

ANY, NEXT, CONTIGUOUS = "skip-till-any-match", "skip-till-next-match", "contiguous"

SCHEMA = Schema(
    tuple(
        Column(name, kind)
        for name, kind in {
            "id": Kind.INT,
            "type": Kind.STRING,
            "time": Kind.INT,
            "x": Kind.INT,
            "y": Kind.FLOAT,
            "g": Kind.STRING,
            "k": Kind.INT,
        }.items()
    )
)
"""The columns of every stream made here; time counts seconds."""

ARROW = pa.schema(
    [("id", pa.int64()), ("type", pa.string()), ("time", pa.int64()), ("x", pa.int64()), ("y", pa.float64()),
     ("g", pa.string()), ("k", pa.int64())]
)  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True)
class Knobs:
    """Which features take part. `outputs`: trends, complete, collapsed, values, aggregates, ranked."""

    semantics: tuple[str, ...] = (ANY, NEXT, CONTIGUOUS)
    outputs: tuple[str, ...] = ("trends", "complete", "values", "aggregates")
    classes: tuple[str, ...] = tuple(CLASSES)  # of conjuncts, see strategies_conditions
    most_conjuncts: int = 3
    most_atoms: int = 5
    most_events: int = 9
    depth: int = 3
    kleene: int = 2
    negation: bool = True
    nesting: int = 0  # every pattern has NOTs inside one another, this deep
    conjunction: bool = True
    predicates: bool = True  # attached to components
    partitions: bool = True
    windows: bool = True
    exists: bool = False
    hiding: bool = False  # every pattern with variables enough hides one or two of them by EXISTS
    extreme: bool = False  # values at the edges of 64 bits and of exact doubles, and many NULLs


@dataclass(frozen=True)
class Case:
    """A query and a stream to run it on."""

    query: str
    events: tuple[Row, ...]

    def table(self) -> pa.Table:
        return to_table(self.events)


def to_table(events: Sequence[Row]) -> pa.Table:
    """The events as an Arrow table; a column of NULLs keeps its type."""
    return pa.Table.from_pylist(list(events), schema=ARROW)


# ---------------------------------------------------------------------------------------------------- streams


X, Y = [0, 1, 2, 3, 4, 1, 2, -1, -2, None], [-1.5, 0.0, 0.5, 1.25, 2.0, None]
"""Sums of quarters are exact, so that the order of addition does not show."""
EXTREME_X = [None, None, 0, 1, 2**63 - 1, 2**63 - 2, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1]
EXTREME_Y = [None, None, 0.0, -0.0, 0.1, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, -(2.0**63)]


@st.composite
def streams(draw: st.DrawFn, most: int = 9, types: Sequence[str] = TYPES, *, extreme: bool = False) -> tuple[Row, ...]:
    """Events with ties in time, NULLs, few distinct values; rows in no order."""
    span = draw(st.sampled_from([8, 4, 10, 12]))
    row = st.fixed_dictionaries(
        {
            "type": st.sampled_from(list(types)),
            "time": st.integers(-2, span),
            "x": st.sampled_from(EXTREME_X if extreme else X),
            "y": st.sampled_from(EXTREME_Y if extreme else Y),
            "g": st.sampled_from(["u", "u", "u", "v", "v", None]),
            "k": st.sampled_from([1, 1, 1, 1, 2, 2, None]),
        }
    )
    # shrinks to few events, but draws many more often than few
    size = draw(st.sampled_from([*range(most + 1), *list(range(most // 2, most + 1)) * 3]))
    rows = draw(st.lists(row, min_size=size, max_size=size))
    return tuple({"id": number} | row for number, row in enumerate(rows))


# ---------------------------------------------------------------------------------------------------- queries


@st.composite
def queries(draw: st.DrawFn, knobs: Knobs = Knobs()) -> str:  # noqa: B008
    """The text of a query over `SCHEMA`."""
    semantics = draw(st.sampled_from(knobs.semantics))
    outputs = [o for o in knobs.outputs if semantics == ANY or o not in ("complete", "collapsed")]
    output = draw(st.sampled_from(outputs or ["trends"]))
    pattern, variables = draw(patterns(knobs, conjunction=knobs.conjunction and semantics == ANY))
    # few conjuncts more often than many: each one loses matches
    count = min(knobs.most_conjuncts, draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3])))
    where = [draw(conjuncts(variables, knobs.classes)) for _ in range(count)]
    equivalence, group_by = draw(partitionings()) if knobs.partitions else ((), ())
    if equivalence:
        where.insert(draw(st.integers(0, len(where))), f"[{', '.join(equivalence)}]")
    hidden = hidden_by(pattern)
    shown = [variable for variable in variables if not variable.scope and variable.name not in hidden]
    keys = tuple(dict.fromkeys((*equivalence, *group_by)))
    clauses = [
        *draw(returns(output, shown, keys, group_by)),
        f"PATTERN {write_pattern(pattern)}",
        f"SEMANTICS {semantics}",
        *([f"WHERE {' AND '.join(_bracketed(conjunct) for conjunct in where)}"] if where else []),
        *([f"GROUP BY {', '.join(group_by)}"] if group_by else []),
        *(draw(windows()) if knobs.windows else []),
    ]
    return "\n".join(clauses)


def _bracketed(conjunct: str) -> str:
    return f"({conjunct})" if " OR " in conjunct else conjunct


@st.composite
def patterns(draw: st.DrawFn, knobs: Knobs, *, conjunction: bool) -> tuple[Pattern, list[Variable]]:
    """A pattern with its names and predicates, and its variables."""
    atoms = min(knobs.most_atoms, draw(st.sampled_from([1, 2, 2, 3, 3, 4, 5])))
    allowed = Allowed(atoms, knobs.depth, knobs.kleene, knobs.negation, conjunction)
    skeleton = draw(nested_negations(knobs.nesting) if knobs.nesting else skeletons(allowed))
    pattern = draw(named(skeleton))
    variables = variables_of(pattern)
    if knobs.predicates:
        pattern = draw(with_predicates(pattern, variables))
    candidates = [variable.name for variable in variables if not variable.scope]
    if len(candidates) > 1 and (knobs.hiding or (knobs.exists and draw(st.booleans()))):
        pattern = Exists(draw(st.sampled_from(candidates)), pattern)
        if knobs.hiding and len(candidates) > 2 and draw(st.integers(0, 2)) == 0:
            pattern = Exists(draw(st.sampled_from(sorted({*candidates} - {pattern.variable}))), pattern)
    return pattern, variables


def hidden_by(pattern: Pattern) -> frozenset[str]:
    """The variables of EXISTS around the whole of a pattern."""
    return frozenset({pattern.variable}) | hidden_by(pattern.pattern) if isinstance(pattern, Exists) else frozenset()


@st.composite
def with_predicates(draw: st.DrawFn, pattern: Pattern, variables: list[Variable]) -> Pattern:
    """Predicates for some of the named components; those inside NOT get them more often."""
    scopes = {variable.name: variable.scope for variable in variables}

    def attach(event: Event) -> Event:
        if event.variable is None:
            return event
        scope = scopes[event.variable]
        if draw(st.integers(0, 2 if scope else 6)) > 0:
            return event
        text = draw(attached(variables, event.variable, scope))
        return replace(event, predicate=parse_expression(text))

    return rebuilt(pattern, attach)


@st.composite
def partitionings(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Equivalence and GROUP BY attributes; mostly none."""
    choices = [(), (), (), ("k",), ("g",), ("k", "g")]
    return draw(st.sampled_from(choices)), draw(st.sampled_from([(), (), *choices]))


@st.composite
def windows(draw: st.DrawFn) -> list[str]:
    """No window, a bound, or windows that overlap, touch, or leave gaps."""
    form = draw(st.sampled_from(["none", "none", "bound", "bound", "slide", "slide"]))
    if form == "none":
        return []
    within = draw(st.sampled_from([4, 1, 2, 3, 5, 6, 8, 10]))
    unit = draw(st.sampled_from(["", " s", " seconds"]))
    if form == "bound":
        return [f"WITHIN {within}{unit}"]
    slide = draw(st.sampled_from([1, 2, 3, within, within + 2]))
    return [f"WITHIN {within}{unit} SLIDE {slide}{unit}"]


# ---------------------------------------------------------------------------------------------------- outputs


@st.composite
def returns(
    draw: st.DrawFn, output: str, shown: list[Variable], keys: tuple[str, ...], group_by: tuple[str, ...]
) -> list[str]:
    """The RETURN clause, and HAVING or RANK BY where the output has them."""
    if output == "aggregates":
        items = draw(st.lists(totals(shown), min_size=1, max_size=3, unique=True))
        listed = [*draw(st.permutations(group_by)), *items]
        having = draw(st.none() | havings(shown, group_by))
        return [f"RETURN {', '.join(listed)}", *([f"HAVING {having}"] if having else [])]
    if output == "values":
        listed = draw(st.lists(values(shown), min_size=1, max_size=3, unique=True))
        bare = [key for key in keys if draw(st.booleans())]
        return [f"RETURN {', '.join([*bare, *listed])}"]
    if output == "ranked":
        direction = draw(st.sampled_from(["", " ASC", " DESC"]))
        return [f"RANK BY {draw(preferences(shown))}{direction} LIMIT {draw(st.integers(1, 4))}"]
    return ["RETURN TRENDS" if output == "trends" else f"RETURN {output.upper()} TRENDS"]


@st.composite
def totals(draw: st.DrawFn, shown: list[Variable]) -> str:
    """An aggregate over all matches, of a variable or of a type."""
    variable = draw(st.sampled_from(shown))
    of = draw(st.sampled_from([variable.name, variable.name, variable.type]))
    function = draw(st.sampled_from(["MIN", "MAX", "SUM", "AVG"]))
    return draw(
        st.sampled_from(
            [
                "COUNT(*)",
                "COUNT(*)",
                f"COUNT({of})",
                f"COUNT({of}.x)",
                f"{function}({of}.x)",
                f"{function}({of}.x)",
                f"{function}({of}.y)",
                f"MAX({of}.g)",
                f"MIN({of}.time)",
                f"SUM({of}.x) / COUNT(*)",
                f"MAX({of}.x) - MIN({of}.x)",
                f"COUNT(*) + COUNT({of})",
            ]
        )
    )


@st.composite
def havings(draw: st.DrawFn, shown: list[Variable], group_by: tuple[str, ...]) -> str:
    of = draw(st.sampled_from(shown)).name
    forms = [
        f"COUNT(*) > {draw(st.integers(0, 3))}",
        f"COUNT({of}) % 2 = 0",
        f"SUM({of}.x) > {draw(st.integers(-1, 4))} OR COUNT(*) < 3",
        f"AVG({of}.y) IS NOT NULL",
        f"NOT (MAX({of}.x) - MIN({of}.x) >= 2)",
        *([f"{group_by[0]} IS NOT NULL AND COUNT(*) >= 1"] if group_by else []),
    ]
    return draw(st.sampled_from(forms))


@st.composite
def values(draw: st.DrawFn, shown: list[Variable]) -> str:
    """A value of one match."""
    variable = draw(st.sampled_from(shown))
    name, end = variable.name, draw(st.sampled_from(["first", "last"]))
    one = f"{name}[{end}]" if variable.plural else name
    function = draw(st.sampled_from(["min", "max", "sum", "avg"]))
    forms = [
        f"{one}.{draw(st.sampled_from(['id', 'x', 'y', 'g', 'time']))}",
        f"{one}.x + {one}.y",
        f"{function}({name}[].x)",
        f"{function}({name}[].y)",
        f"count({name}[])",
        f"duration({name})",
        f"coalesce({one}.x, 0) * 2",
        f"abs({one}.x)",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def preferences(draw: st.DrawFn, shown: list[Variable]) -> str:
    """A score of a match: sums of attributes and of sums over Kleene variables."""
    chosen = draw(st.lists(st.sampled_from(shown), min_size=1, max_size=3, unique_by=lambda variable: variable.name))
    terms = []
    for variable in chosen:
        column = draw(st.sampled_from(["x", "y"]))
        function = draw(st.sampled_from(["sum", "sum", "max", "min"]))
        terms.append(f"{function}({variable.name}[].{column})" if variable.plural else f"{variable.name}.{column}")
    weight = draw(st.sampled_from(["", "", "2 * "]))
    return weight + " + ".join(terms)


# ------------------------------------------------------------------------------------------------------ cases

EVENTS_BY_RIVALS = {1: 9, 2: 9, 3: 8, 4: 7}
"""Each event can take one of `rivals` positions or none: (rivals + 1) ** events bindings at most."""


@st.composite
def cases(draw: st.DrawFn, knobs: Knobs = Knobs()) -> Case:  # noqa: B008
    """A query and a stream whose types are mostly those of its pattern, so that there are matches."""
    query = draw(queries(knobs))
    pattern = parse_query(query).pattern
    used = sorted({variable.type for variable in variables_of(pattern)})
    most = min(knobs.most_events, EVENTS_BY_RIVALS.get(rivals(pattern), 6))
    return Case(query, draw(streams(most, used * 4 + [draw(st.sampled_from(TYPES))], extreme=knobs.extreme)))
