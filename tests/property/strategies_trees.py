"""Random syntax trees: every node of the language, names that need backquotes, strings that need quoting.

The trees are those that some text has: literals are never negative, a bare variable is an argument of an aggregate or
of duration, repetitions are sensible. What they mean does not matter here.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st

from trendloom.frontend import tree
from trendloom.frontend.tql.keywords import RESERVED
from trendloom.model.selection import Semantics, Trends

UNITS = ("us", "ms", "s", "min", "h", "d")
AGGREGATES = ("count", "min", "max", "sum", "avg")

reserved = st.sampled_from(RESERVED).flatmap(lambda word: st.sampled_from([word, word.lower(), word.title()]))
names = st.one_of(
    st.sampled_from(
        ["a", "b", "Stock", "price", "i", "first", "min", "s", "count", "merge", "interval", "_x1", "größe", "价格"]
    ),
    reserved,
    st.sampled_from(["a b", "a`b", "``", "1a", "a.b", "a-b", "--", "'", " ", "line\nbreak", "SEQ(", "x:"]),
    st.text(min_size=1, max_size=6),
)
strings = st.one_of(
    st.sampled_from(["", "'", "''", "it's", "--no comment", "two\nlines", "`", "a%_"]), st.text(max_size=8)
)
decimals = st.builds(Fraction, st.integers(0, 10**6), st.sampled_from([1, 2, 4, 5, 10, 1000, 10**6]))
positive_decimals = decimals.filter(lambda amount: amount > 0)

literals = st.one_of(
    st.integers(0, 10**30),
    st.floats(0, allow_infinity=False, allow_nan=False).map(lambda value: Decimal(repr(value))),
    st.decimals(0, 10**25, allow_nan=False, places=9).map(tree.canonical_number),
    strings,
    st.booleans(),
).map(tree.Literal)
references = st.one_of(
    st.builds(tree.Reference, names, st.sampled_from(tree.Index), names),
    st.builds(tree.Reference, names, st.sampled_from([tree.Index.ALL, tree.Index.BEFORE]), st.none()),
)
aggregates = st.builds(
    lambda name, argument: tree.Call(name, (argument,)),
    st.sampled_from(AGGREGATES),
    st.one_of(st.just(tree.Star()), st.builds(tree.Reference, names, st.just(tree.Index.EACH), st.none() | names)),
)
durations = st.builds(lambda variable: tree.Call("duration", (tree.Reference(variable, tree.Index.EACH, None),)), names)
leaves = st.one_of(
    literals,
    references,
    aggregates,
    st.just(tree.Call("probability", (tree.Star(),))),
    durations,
    st.builds(tree.DurationLiteral, decimals, st.sampled_from(UNITS)),
    st.builds(tree.Name, names),
    st.builds(tree.Equivalence, st.lists(names, min_size=1, max_size=3).map(tuple)),
)


def several(parts: st.SearchStrategy[tree.Node], least: int, most: int = 3) -> st.SearchStrategy[tuple[tree.Node, ...]]:
    return st.lists(parts, min_size=least, max_size=most).map(tuple)


def is_expressible(call: tree.Call) -> bool:
    """`count(E)` reads its bare argument as a variable, never as an attribute."""
    takes_a_variable = call.name in (*AGGREGATES, "duration")
    return not (takes_a_variable and len(call.arguments) == 1 and isinstance(call.arguments[0], tree.Name))


def compound(inner: st.SearchStrategy[tree.Expression]) -> st.SearchStrategy[tree.Expression]:
    functions = st.sampled_from(["abs", "sqrt", "coalesce", "round", "min", "max", "next", "seq", "oddly named"])
    return st.one_of(
        st.builds(tree.Unary, st.sampled_from(["-", "not"]), inner),
        st.builds(
            tree.Binary, st.sampled_from(["+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">="]), inner, inner
        ),
        st.builds(tree.Logical, st.sampled_from(["and", "or"]), several(inner, 2)),
        st.builds(tree.In, inner, several(inner, 1)),
        st.builds(tree.Between, inner, inner, inner),
        st.builds(tree.IsNull, inner, st.booleans()),
        st.builds(tree.Like, inner, strings),
        st.builds(tree.Call, functions, several(inner, 0)).filter(is_expressible),
    )


expressions = st.recursive(leaves, compound, max_leaves=12)

lengths = st.builds(tree.Length, positive_decimals, st.none() | st.sampled_from(UNITS))
events = st.builds(tree.Event, names, st.none() | names, st.none() | st.recursive(leaves, compound, max_leaves=3))


@st.composite
def repeats(draw: st.DrawFn, inner: st.SearchStrategy[tree.Pattern]) -> tree.Repeat:
    pattern = draw(inner)
    spelling = draw(st.sampled_from(["+", "*", "?", "{}"]))
    if spelling != "{}":
        return tree.Repeat(pattern, 1 if spelling == "+" else 0, 1 if spelling == "?" else None, spelling)
    least = draw(st.integers(0, 3))
    most = draw(st.none() | st.integers(max(1, least), 5))
    return tree.Repeat(pattern, least, most, spelling)


def composite_patterns(inner: st.SearchStrategy[tree.Pattern]) -> st.SearchStrategy[tree.Pattern]:
    return st.one_of(
        st.builds(tree.Seq, several(inner, 1)),
        st.builds(tree.Or, several(inner, 2)),
        st.builds(tree.And, several(inner, 2)),
        st.builds(tree.Not, inner),
        st.builds(tree.Exists, names, inner),
        st.builds(tree.OperandWithin, inner, lengths),
        repeats(inner),
    )


patterns = st.recursive(events, composite_patterns, max_leaves=8)
items = st.builds(tree.Item, expressions, st.none() | names)
preferences = st.one_of(
    expressions,
    st.builds(tree.Merge, st.sampled_from(["avg", "min", "max", "sum"]), several(expressions, 2)),
)


def queries(name: st.SearchStrategy[str | None]) -> st.SearchStrategy[tree.Query]:
    return st.builds(
        tree.Query,
        pattern=patterns,
        returns=st.sampled_from(Trends) | several(items, 1),
        semantics=st.sampled_from(Semantics),
        where=st.none() | expressions,
        group_by=st.lists(names, max_size=3).map(tuple),
        having=st.none() | expressions,
        within=st.none() | st.builds(tree.Within, lengths, st.none() | lengths),
        rank_by=st.none() | st.builds(tree.RankBy, preferences, st.booleans(), st.integers(1, 100), st.booleans()),
        confidence=st.none() | st.builds(Fraction, st.integers(0, 1000), st.just(1000)),
        name=name,
    )


workloads = st.lists(queries(names), min_size=1, max_size=3, unique_by=lambda query: query.name).map(tuple)
