"""From Lark's parse tree to ours: one method per form of the grammar, and the checks that a grammar cannot make.

Every node gets the span of its text. Slips that people make often (`A+ B`, `WITHIN 0`, an unknown unit) are accepted by
the grammar and explained here, where what was written is still known. Cost: one visit of each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from lark import Token
from lark.tree import Meta

from trendloom.errors import ParseError, Span, did_you_mean
from trendloom.frontend import tree
from trendloom.frontend.tql.build_parts import Children, ExpressionBuilder, PatternBuilder
from trendloom.frontend.tql.keywords import SEMANTICS
from trendloom.frontend.tql.printer import write_expression
from trendloom.model.selection import Semantics, Trends

MOST_RANKED = 1_000_000
"""So many matches can be asked for with LIMIT."""

_TWICE = {
    "WHERE": "join the two conditions with AND",
    "HAVING": "join the two conditions with AND",
    "GROUP BY": "list the attributes with commas in one GROUP BY",
    "RETURN": "list the values with commas in one RETURN",
    "PATTERN": "one after another is SEQ(p, q), either is OR(p, q); a second query is opened by QUERY name:",
}


@dataclass(frozen=True)
class Clause:
    """One clause as read: its fields of `Query`, and where its keywords stand."""

    keyword: str
    fields: dict[str, Any]
    spans: tuple[tuple[str, Span], ...]


class Builder(PatternBuilder, ExpressionBuilder):
    """Builds the queries of one text."""

    def one_query(self, meta: Meta, clauses: Children) -> tuple[tree.Query, ...]:
        return (self._query(meta, clauses, None),)

    def workload(self, meta: Meta, queries: Children) -> tuple[tree.Query, ...]:
        named: dict[str, list[tree.Query]] = {}
        for query in queries:
            named.setdefault(query.name, []).append(query)
        alike = [self._namesakes(name, some) for name, some in named.items() if len(some) > 1]
        if len(alike) > 1:
            raise ParseError("Queries have names in common", alike[0].span, text=self.source.text, parts=alike)
        if alike:
            raise alike[0]
        return tuple(queries)

    def _namesakes(self, name: str, queries: Sequence[tree.Query]) -> ParseError:
        """What is wrong with queries of one name; it points at the second."""
        spans = [span for query in queries if (span := query.clause("QUERY")) is not None]
        others = " and ".join(f"in line {span.line}, column {span.column}" for span in (spans[0], *spans[2:]))
        count = "Two" if len(queries) == 2 else str(len(queries))
        return self.error(f"{count} queries are named '{name}': here, and {others}", spans[1], "give each its own name")

    def named(self, meta: Meta, children: Children) -> tree.Query:
        _, name, *clauses = children
        query = self._query(meta, clauses, name.text)
        return replace(query, spans=(("QUERY", name.span), *query.spans))

    def _query(self, meta: Meta, clauses: Sequence[Clause], name: str | None) -> tree.Query:
        fields: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        for clause in clauses:
            if clause.keyword in spans:
                place = clause.spans[0][1]
                raise self.error(
                    f"A second {clause.keyword} clause", place, _TWICE.get(clause.keyword, "remove one of them")
                )
            fields |= clause.fields
            spans |= dict(clause.spans)
        if "pattern" not in fields:
            whose = "The query" if name is None else f"Query '{name}'"
            raise self.error(
                f"{whose} has no PATTERN clause", self.at(meta), "add one, for example: PATTERN SEQ(A a, B b)"
            )
        return tree.Query(**fields, name=name, text=self.source.text, spans=tuple(spans.items()), span=self.at(meta))

    def _clause(self, keyword: str, token: Token, **fields: Any) -> Clause:
        return Clause(keyword, fields, ((keyword, self.at_token(token)),))

    def return_trends(self, meta: Meta, children: Children) -> Clause:
        keyword, kind, _ = children
        return self._clause("RETURN", keyword, returns=Trends.ALL if kind is None else Trends(f"{kind.type} TRENDS"))

    def return_items(self, meta: Meta, children: Children) -> Clause:
        return self._clause("RETURN", children[0], returns=tuple(children[1:]))

    def item(self, meta: Meta, children: Children) -> tree.Item:
        expression, _, alias = children
        return tree.Item(expression, alias.text if alias else None, span=self.at(meta))

    def plain_clause(self, meta: Meta, children: Children) -> Clause:
        """PATTERN, WHERE and HAVING, whose one part is a field of that name."""
        keyword, value = children
        return self._clause(keyword.type, keyword, **{keyword.type.lower(): value})

    def semantics_clause(self, meta: Meta, children: Children) -> Clause:
        keyword, written = children
        return self._clause("SEMANTICS", keyword, semantics=self._semantics(written))

    def _semantics(self, written: Token) -> Semantics:
        word = written.lower()
        if word not in SEMANTICS:
            shortened = [name for name in SEMANTICS if word in name.split("-")]
            hint = f"did you mean '{shortened[0]}'?" if len(shortened) == 1 else did_you_mean(word, SEMANTICS)
            raise self.error(f"Unknown semantics '{written}'", self.at_token(written), hint)
        return SEMANTICS[word]

    def group_clause(self, meta: Meta, children: Children) -> Clause:
        return self._clause("GROUP BY", children[0], group_by=tuple(attribute.text for attribute in children[1:]))

    def within_clause(self, meta: Meta, children: Children) -> Clause:
        keyword, within, slide_keyword, slide = children
        clause = self._clause("WITHIN", keyword, within=tree.Within(within, slide, span=self.at(meta)))
        if slide_keyword is None:
            return clause
        return replace(clause, spans=(*clause.spans, ("SLIDE", self.at_token(slide_keyword))))

    def length(self, meta: Meta, children: Children) -> tree.Length:
        amount, unit = self.exact(children[0]), children[1]
        return self._positive(tree.Length(amount, self.unit_of(unit) if unit else None, span=self.at(meta)))

    def _positive(self, length: tree.Length) -> tree.Length:
        if length.amount == 0:
            place = length.span or Span(1, 1)
            raise self.error("Durations are positive, this one is zero", place, "write a length such as 10 min")
        return length

    def interval_length(self, meta: Meta, children: Children) -> tree.Length:
        (duration,) = children
        return self._positive(tree.Length(duration.amount, duration.unit, span=self.at(meta)))

    def negative_length_mistake(self, meta: Meta, children: Children) -> tree.Length:
        raise self.error("Durations are positive, this one is negative", self.at(meta), "leave out the minus sign")

    def rank_clause(self, meta: Meta, children: Children) -> Clause:
        keyword, preference, direction, _, limit, overall = children
        ranked = tree.RankBy(
            self._preference(preference),
            direction is not None and direction.lower() == "desc",
            self._limit(limit),
            overall is not None,
            span=self.at(meta),
        )
        return self._clause("RANK BY", keyword, rank_by=ranked)

    def _limit(self, written: Token) -> int:
        limit = self.whole(written, least=1, what="LIMIT", hint="how many matches: LIMIT 10")
        if limit > MOST_RANKED:
            raise self.error(
                f"LIMIT is at most {MOST_RANKED:,}", self.at_token(written), "leave RANK BY out, and sort the rows"
            )
        return limit

    def negative_limit_mistake(self, meta: Meta, children: Children) -> Token:
        raise self.error("LIMIT is at least 1", self.at(meta), "how many matches: LIMIT 10")

    def _preference(self, preference: tree.Expression) -> tree.Expression | tree.Merge:
        if not (isinstance(preference, tree.Call) and preference.name == "merge"):
            return preference
        place = preference.span or Span(1, 1)
        first, *rest = preference.arguments or (None,)
        if not (isinstance(first, tree.Name) and first.name.lower() in ("avg", "min", "max", "sum")):
            raise self.error("MERGE starts with avg, min, max or sum", place, "for example MERGE(avg, a.x + b.x, c.x)")
        if not rest:
            raise self.error("MERGE has no preference to merge", place, "for example MERGE(avg, a.x + b.x, c.x)")
        if len(rest) == 1:
            only = write_expression(rest[0])
            raise self.error("MERGE needs two preferences or more", place, f"the one alone: RANK BY {only}")
        return tree.Merge(cast(Any, first.name.lower()), tuple(rest), span=place)

    def confidence_clause(self, meta: Meta, children: Children) -> Clause:
        keyword, sign, number = children
        if sign != ">=":
            raise self.error(f"CONFIDENCE is followed by '>=', not '{sign}'", self.at_token(sign), "CONFIDENCE >= 0.8")
        if self.exact(number) > 1:
            raise self.error("A confidence is a number from 0 to 1", self.at_token(number), "CONFIDENCE >= 0.8")
        return self._clause("CONFIDENCE", keyword, confidence=self.exact(number))
