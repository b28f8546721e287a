"""From Lark's parse tree to ours: one method per form of the grammar, and the checks that a grammar cannot make.

Every node gets the span of its text. Slips that people make often (`A+ B`, `WITHIN 0`, an unknown unit) are accepted by
the grammar and explained here, where what was written is still known. Cost: one visit of each node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from lark import Token, Tree
from lark.tree import Meta

from trendloom.errors import ParseError, Span, did_you_mean
from trendloom.frontend import tree
from trendloom.frontend.source import SourceText
from trendloom.frontend.tql.keywords import AGGREGATES, SEMANTICS, UNITS, closest_clause
from trendloom.frontend.tql.printer import write_expression
from trendloom.frontend.tree import Index, canonical_number
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
_OTHER_UNITS = {
    "m": "did you mean 'min' or 'ms'?",
    "mn": "did you mean 'min'?",
    "sec": "did you mean 's'?",
    "hr": "did you mean 'h'?",
    "week": "write days: 7 d",
    "month": "months differ in length; write days: 30 d",
    "quarter": "quarters differ in length; write days: 91 d",
    "year": "years differ in length; write days: 365 d",
    "ns": "times are kept to the microsecond: us",
    "nanosecond": "times are kept to the microsecond: us",
}
"""Units of other languages (singular), and what to write."""

_OUT_OF_RANGE = "This number is out of range", "numbers go up to about 1.8e308"
_INDEXES: dict[str, Index] = {"": Index.ALL} | {
    index.value: index for index in (Index.CURRENT, Index.PREVIOUS, Index.FIRST, Index.LAST, Index.BEFORE)
}
_OTHER_INDEXES = {
    "0": "[first]", "1": "[first]", "-1": "[last]", "n": "[last]", "i+1": "NEXT(...)", "..": "[]", "*": "[]"
}  # fmt: skip
"""Indexes of other languages, and what to write."""

_INTERVAL = re.compile(r"\s*(?P<amount>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(?P<unit>[^\W\d]+)?\s*")
_TAKES_A_VARIABLE = AGGREGATES | {"duration"}
_CALLED_PATTERNS: dict[str, type[tree.Seq | tree.Or | tree.And]] = {"SEQ": tree.Seq, "OR": tree.Or, "AND": tree.And}
_SIGNS = {"+": (1, None), "*": (0, None), "?": (0, 1)}


@dataclass(frozen=True)
class Word:
    """A name without its backquotes, and its place."""

    text: str
    span: Span
    start: int


@dataclass(frozen=True)
class Clause:
    """One clause as read: its fields of `Query`, and where its keywords stand."""

    keyword: str
    fields: dict[str, Any]
    spans: tuple[tuple[str, Span], ...]


class Builder:
    """Builds the trees of one text.

    Each form of the grammar has a method, which receives a node's offsets (`meta`) and its children, already built.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source

    def build(self, node: Tree[Token]) -> Any:
        """The tree of a node, by the method for its form; tokens are left as they are."""
        children = (self.build(child) if isinstance(child, Tree) else child for child in node.children)
        return getattr(self, node.data)(node.meta, *children)

    def at(self, place: Meta | Token) -> Span:
        return self.source.span(place.start_pos or 0, place.end_pos or 0)

    def error(self, message: str, place: Meta | Token | Span, hint: str | None = None) -> ParseError:
        span = place if isinstance(place, Span) else self.at(place)
        return ParseError(message, span, hint=hint, text=self.source.text)

    def written(self, meta: Meta) -> str:
        """The text of a node on one line."""
        return " ".join(self.source.text[meta.start_pos : meta.end_pos].split())

    # ------------------------------------------------------------------------------------------- queries

    def one_query(self, meta: Meta, *clauses: Clause) -> tuple[tree.Query, ...]:
        return (self._query(meta, clauses, None),)

    def workload(self, meta: Meta, *queries: tree.Query) -> tuple[tree.Query, ...]:
        named: dict[str | None, list[tree.Query]] = {}
        for query in queries:
            named.setdefault(query.name, []).append(query)
        alike = [self._namesakes(some) for some in named.values() if len(some) > 1]
        if len(alike) > 1:
            raise ParseError("Queries have names in common", alike[0].span, text=self.source.text, parts=alike)
        if alike:
            raise alike[0]
        return queries

    def _namesakes(self, queries: Sequence[tree.Query]) -> ParseError:
        """The error for queries of one name; it points at the second."""
        spans = [span for query in queries if (span := query.clause("QUERY")) is not None]
        others = " and ".join(f"in line {span.line}, column {span.column}" for span in (spans[0], *spans[2:]))
        count = "Two" if len(queries) == 2 else str(len(queries))
        message = f"{count} queries are named '{queries[0].name}': here, and {others}"
        return self.error(message, spans[1], "give each its own name")

    def named(self, meta: Meta, keyword: Token, name: Word, *clauses: Clause) -> tree.Query:
        query = self._query(meta, clauses, name.text)
        return replace(query, spans=(("QUERY", name.span), *query.spans))

    def _query(self, meta: Meta, clauses: Sequence[Clause], name: str | None) -> tree.Query:
        fields: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        for clause in clauses:
            if clause.keyword in spans:
                hint = _TWICE.get(clause.keyword, "remove one of them")
                raise self.error(f"A second {clause.keyword} clause", clause.spans[0][1], hint)
            fields |= clause.fields
            spans |= dict(clause.spans)
        if "pattern" not in fields:
            whose = "The query" if name is None else f"Query '{name}'"
            raise self.error(f"{whose} has no PATTERN clause", meta, "add one, for example: PATTERN SEQ(A a, B b)")
        return tree.Query(**fields, name=name, text=self.source.text, spans=tuple(spans.items()), span=self.at(meta))

    # ------------------------------------------------------------------------------------------- clauses

    def _clause(self, name: str, keyword: Token, **fields: Any) -> Clause:
        return Clause(name, fields, ((name, self.at(keyword)),))

    def return_trends(self, meta: Meta, keyword: Token, form: Token | None, trends: Token) -> Clause:
        return self._clause("RETURN", keyword, returns=Trends.ALL if form is None else Trends(f"{form.type} TRENDS"))

    def return_items(self, meta: Meta, keyword: Token, *items: tree.Item) -> Clause:
        return self._clause("RETURN", keyword, returns=items)

    def item(self, meta: Meta, expression: tree.Expression, as_: Token | None, alias: Word | None) -> tree.Item:
        return tree.Item(expression, alias.text if alias else None, span=self.at(meta))

    def plain_clause(self, meta: Meta, keyword: Token, value: object) -> Clause:
        """PATTERN, WHERE and HAVING, whose one part is a field of that name."""
        return self._clause(keyword.type, keyword, **{keyword.type.lower(): value})

    def semantics_clause(self, meta: Meta, keyword: Token, written: Token) -> Clause:
        return self._clause("SEMANTICS", keyword, semantics=self._semantics(written))

    def _semantics(self, written: Token) -> Semantics:
        word = written.lower()
        if word not in SEMANTICS:
            shortened = [name for name in SEMANTICS if word in name.split("-")]
            hint = f"did you mean '{shortened[0]}'?" if len(shortened) == 1 else did_you_mean(word, SEMANTICS)
            raise self.error(f"Unknown semantics '{written}'", written, hint)
        return SEMANTICS[word]

    def group_clause(self, meta: Meta, keyword: Token, *attributes: Word) -> Clause:
        return self._clause("GROUP BY", keyword, group_by=tuple(attribute.text for attribute in attributes))

    def within_clause(
        self, meta: Meta, keyword: Token, within: tree.Length, slide_keyword: Token | None, slide: tree.Length | None
    ) -> Clause:
        clause = self._clause("WITHIN", keyword, within=tree.Within(within, slide, span=self.at(meta)))
        if slide_keyword is None:
            return clause
        return replace(clause, spans=(*clause.spans, ("SLIDE", self.at(slide_keyword))))

    def length(self, meta: Meta, amount: Token, unit: Token | None) -> tree.Length:
        return self._positive(tree.Length(self.exact(amount), self.unit(unit) if unit else None, span=self.at(meta)))

    def interval_length(self, meta: Meta, duration: tree.DurationLiteral) -> tree.Length:
        return self._positive(tree.Length(duration.amount, duration.unit, span=self.at(meta)))

    def _positive(self, length: tree.Length) -> tree.Length:
        if length.amount == 0:
            place = length.span or Span(1, 1)
            raise self.error("Durations are positive, this one is zero", place, "write a length such as 10 min")
        return length

    def negative_length_mistake(self, meta: Meta, *children: object) -> tree.Length:
        raise self.error("Durations are positive, this one is negative", meta, "leave out the minus sign")

    def rank_clause(
        self,
        meta: Meta,
        keyword: Token,
        preference: tree.Expression,
        direction: Token | None,
        limit_keyword: Token,
        limit: Token,
        overall: Token | None,
    ) -> Clause:
        descending = direction is not None and direction.lower() == "desc"
        ranked = tree.RankBy(
            self._preference(preference), descending, self._limit(limit), overall is not None, span=self.at(meta)
        )
        return self._clause("RANK BY", keyword, rank_by=ranked)

    def _limit(self, written: Token) -> int:
        limit = self.whole(written, least=1, what="LIMIT", hint="how many matches: LIMIT 10")
        if limit > MOST_RANKED:
            raise self.error(f"LIMIT is at most {MOST_RANKED:,}", written, "leave RANK BY out, and sort the rows")
        return limit

    def negative_limit_mistake(self, meta: Meta, *children: object) -> Token:
        raise self.error("LIMIT is at least 1", meta, "how many matches: LIMIT 10")

    def _preference(self, preference: tree.Expression) -> tree.Expression | tree.Merge:
        if not (isinstance(preference, tree.Call) and preference.name == "merge"):
            return preference
        place, example = preference.span or Span(1, 1), "for example MERGE(avg, a.x + b.x, c.x)"
        match preference.arguments:
            case (tree.Name(function), *preferences) if function.lower() in ("avg", "min", "max", "sum"):
                if not preferences:
                    raise self.error("MERGE has no preference to merge", place, example)
                if len(preferences) == 1:
                    only = write_expression(preferences[0])
                    raise self.error("MERGE needs two preferences or more", place, f"the one alone: RANK BY {only}")
                return tree.Merge(function.lower(), tuple(preferences), span=place)  # type: ignore[arg-type]
        raise self.error("MERGE starts with avg, min, max or sum", place, example)

    def confidence_clause(self, meta: Meta, keyword: Token, sign: Token, number: Token) -> Clause:
        if sign != ">=":
            raise self.error(f"CONFIDENCE is followed by '>=', not '{sign}'", sign, "CONFIDENCE >= 0.8")
        if self.exact(number) > 1:
            raise self.error("A confidence is a number from 0 to 1", number, "CONFIDENCE >= 0.8")
        return self._clause("CONFIDENCE", keyword, confidence=self.exact(number))

    # ------------------------------------------------------------------------------------------ patterns

    def event(self, meta: Meta, type_: Word, variable: Word | None = None) -> tree.Event:
        return self.restricted_event(meta, type_, variable, None)

    def restricted_event(
        self, meta: Meta, type_: Word, variable: Word | None, predicate: tree.Expression | None
    ) -> tree.Event:
        return tree.Event(type_.text, None if variable is None else variable.text, predicate, span=self.at(meta))

    def pattern_call(self, meta: Meta, keyword: Token, *parts: tree.Pattern) -> tree.Pattern:
        word = keyword.type
        if word != "SEQ" and len(parts) < 2:
            raise self.error(f"{word} needs two parts or more", meta, f"{word}(p, q), or the one part alone")
        return _CALLED_PATTERNS[word](parts, span=self.at(meta))

    def or_pattern(self, meta: Meta, *children: Any) -> tree.Or:
        return tree.Or(tuple(part for part in children if not isinstance(part, Token)), span=self.at(meta))

    def not_pattern(self, meta: Meta, *children: Any) -> tree.Not:
        return tree.Not(children[-1], span=self.at(meta))

    def exists_pattern(self, meta: Meta, exists: Token, variable: Word, pattern: tree.Pattern) -> tree.Exists:
        return tree.Exists(variable.text, pattern, span=self.at(meta))

    def operand_within(self, meta: Meta, pattern: tree.Pattern, within: Token, length: tree.Length) -> tree.Pattern:
        return tree.OperandWithin(pattern, length, span=self.at(meta))

    def repeat(self, meta: Meta, pattern: tree.Pattern, sign: Any) -> tree.Repeat:
        return tree.Repeat(pattern, *_SIGNS[sign], str(sign), span=self.at(meta))  # type: ignore[arg-type]

    def exactly(self, meta: Meta, pattern: tree.Pattern, count: Token) -> tree.Repeat:
        return self.from_to(meta, pattern, count, count)

    def at_least(self, meta: Meta, pattern: tree.Pattern, least: Token) -> tree.Repeat:
        return self.from_to(meta, pattern, least, None)

    def from_to(self, meta: Meta, pattern: tree.Pattern, low: Token, high: Token | None) -> tree.Repeat:
        least = self.whole(low, least=0, what="A repetition")
        most = None if high is None else self.whole(high, least=0, what="A repetition")
        if most is not None and most < least:
            raise self.error(f"{{{low},{high}}} ends before it begins", low, f"did you mean {{{high},{low}}}?")
        if most == 0:
            raise self.error("A pattern repeated zero times is nothing", meta, "leave it out, or write '?' or '*'")
        return tree.Repeat(pattern, least, most, "{}", span=self.at(meta))

    def named_repeat(self, meta: Meta, pattern: tree.Pattern, variable: Word) -> tree.Pattern:
        return replace(self._bound(pattern, variable), span=self.at(meta))

    def _bound(self, pattern: tree.Pattern, variable: Word) -> tree.Pattern:
        """The repeated pattern with the variable given to its one event."""
        if isinstance(pattern, tree.Repeat):
            return replace(pattern, pattern=self._bound(pattern.pattern, variable))
        if isinstance(pattern, tree.Event) and pattern.variable is None and pattern.predicate is None:
            return replace(pattern, variable=variable.text)
        raise self.error(
            f"'{variable.text}[]' must follow a plain type with its repetition",
            variable.span,
            f"Type+ {variable.text}[], or (Type {variable.text}: condition)+",
        )

    def missing_brackets_mistake(self, meta: Meta, pattern: tree.Pattern, variable: Word) -> tree.Pattern:
        name, clause = variable.text, closest_clause(variable.text)
        if clause:
            raise self.error(f"Unknown clause '{name}'", variable.span, f"did you mean {clause}?")
        repeated = self.source.text[meta.start_pos : variable.start].strip()
        raise self.error(
            f"'{self.written(meta)}': after a repetition, a variable is written {name}[]",
            variable.span,
            f"a comma between {repeated} and {name}? Or {repeated} {name}[]?",
        )

    def missing_repeat_mistake(self, meta: Meta, type_: Word, variable: Word) -> tree.Pattern:
        raise self.error(
            f"'{self.written(meta)}' has no repetition, so it is one event",
            meta,
            f"one event: {type_.text} {variable.text}; several: {type_.text}+ {variable.text}[]",
        )

    # --------------------------------------------------------------------------------------- expressions

    def logical(self, meta: Meta, *children: Any) -> tree.Logical:
        return tree.Logical(children[1].lower(), children[::2], span=self.at(meta))

    def inverse(self, meta: Meta, negation: Token, operand: tree.Expression) -> tree.Unary:
        return tree.Unary("not", operand, span=self.at(meta))

    def binary(self, meta: Meta, left: tree.Expression, sign: Any, right: tree.Expression) -> tree.Binary:
        return tree.Binary("!=" if sign == "<>" else str(sign), left, right, span=self.at(meta))  # type: ignore[arg-type]

    def in_list(self, meta: Meta, operand: tree.Expression, negation: Token | None, in_: Token, *items: Any) -> Any:
        return _negated(negation, tree.In(operand, items, span=self.at(meta)))

    def between(
        self, meta: Meta, operand: Any, negation: Token | None, between: Token, low: Any, and_: Token, high: Any
    ) -> Any:
        return _negated(negation, tree.Between(operand, low, high, span=self.at(meta)))

    def like(self, meta: Meta, operand: tree.Expression, negation: Token | None, like: Token, pattern: Token) -> Any:
        return _negated(negation, tree.Like(operand, unquoted(pattern, "'"), span=self.at(meta)))

    def null_test(self, meta: Meta, operand: tree.Expression, is_: Token, negation: Token | None, null: Token) -> Any:
        return tree.IsNull(operand, negation is not None, span=self.at(meta))

    def minus(self, meta: Meta, operand: tree.Expression) -> tree.Unary:
        return tree.Unary("-", operand, span=self.at(meta))

    def number(self, meta: Meta, token: Token) -> tree.Literal:
        value = int(self.checked(token)) if token.isdigit() else canonical_number(Decimal(self.checked(token)))
        if isinstance(value, Decimal) and math.isinf(float(value)):
            raise self.error(_OUT_OF_RANGE[0], meta, _OUT_OF_RANGE[1])
        return tree.Literal(value, span=self.at(meta))

    def duration(self, meta: Meta, amount: Token, unit: Token) -> tree.DurationLiteral:
        return tree.DurationLiteral(self.exact(amount), self.unit(unit), span=self.at(meta))

    def interval(self, meta: Meta, keyword: Token, written: Token, unit: Token | None) -> tree.DurationLiteral:
        """`INTERVAL '10' MINUTE`, `INTERVAL '10 minutes'` and `INTERVAL 10 MINUTE`: SQL's way to write `10 min`."""
        text = unquoted(written, "'") if written.type == "STRING" else str(written)
        found = _INTERVAL.fullmatch(text)
        if found is None or (unit is None) == (found["unit"] is None):
            hint = "one number and one unit: INTERVAL '10' MINUTE, or simply 10 min"
            raise self.error(f"'{self.written(meta)}' is not a duration", meta, hint)
        amount = Token.new_borrow_pos("NUMBER", found["amount"], written)
        return self.duration(meta, amount, unit or Token.new_borrow_pos("NAME", found["unit"], written))

    def string(self, meta: Meta, token: Token) -> tree.Literal:
        return tree.Literal(unquoted(token, "'"), span=self.at(meta))

    def boolean(self, meta: Meta, token: Token) -> tree.Literal:
        return tree.Literal(token.type == "TRUE", span=self.at(meta))

    def bare_name(self, meta: Meta, name: Word) -> tree.Name:
        return tree.Name(name.text, span=self.at(meta))

    def each_reference(self, meta: Meta, variable: Word, attribute: Word) -> tree.Reference:
        return self.indexed_reference(meta, variable, Index.EACH, attribute)

    def next_reference(self, meta: Meta, keyword: Token, variable: Word, attribute: Word | None) -> tree.Reference:
        return self.indexed_reference(meta, variable, Index.NEXT, attribute)

    def indexed_reference(self, meta: Meta, variable: Word, index: Index, attribute: Word | None) -> tree.Reference:
        if attribute is None and index not in (Index.ALL, Index.BEFORE):
            written = self.written(meta)
            raise self.error(f"'{written}' is an event, not a value", meta, f"name an attribute: {written}.x")
        name, place = (None, None) if attribute is None else (attribute.text, attribute.span)
        return tree.Reference(variable.text, index, name, span=self.at(meta), attribute_span=place)

    def index(self, meta: Meta, *tokens: Token) -> Index:
        written = "".join(tokens).lower()
        if written not in _INDEXES:
            meant = f"did you mean {_OTHER_INDEXES[written]}? There is" if written in _OTHER_INDEXES else "write"
            hint = f"{meant} [i], [i-1], [first], [last], [] or [..i-1]"
            raise self.error(f"'[{''.join(tokens)}]' says no event of a variable", meta, hint)
        return _INDEXES[written]

    def call(self, meta: Meta, function: Word, *arguments: tree.Expression) -> tree.Call:
        name = function.text.lower()
        if name in _TAKES_A_VARIABLE and len(arguments) == 1 and isinstance(arguments[0], tree.Name):
            bare = arguments[0]
            arguments = (tree.Reference(bare.name, Index.EACH, None, span=bare.span),)
        return tree.Call(name, arguments, span=self.at(meta))

    def call_star(self, meta: Meta, function: Word) -> tree.Call:
        return tree.Call(function.text.lower(), (tree.Star(span=self.at(meta)),), span=self.at(meta))

    def equivalence(self, meta: Meta, *attributes: Word) -> tree.Equivalence:
        return tree.Equivalence(tuple(attribute.text for attribute in attributes), span=self.at(meta))

    # --------------------------------------------------------------------------------- names and numbers

    def name(self, meta: Meta, token: Token) -> Word:
        text = unquoted(token, "`") if token.type == "QUOTED" else str(token)
        return Word(text, self.at(token), token.start_pos or 0)

    attribute = name

    def whole(self, token: Token, *, least: int, what: str, hint: str | None = None) -> int:
        if not token.isdigit():
            raise self.error(f"{what} is a whole number, not {token}", token, hint)
        count = int(self.checked(token))
        if count < least:
            raise self.error(f"{what} is at least {least}", token, hint)
        return count

    def exact(self, token: Token) -> Fraction:
        return Fraction(self.checked(token))

    def checked(self, token: Token) -> Token:
        """A number that costs nothing to compute with: `1e999999999` as a fraction would fill the memory."""
        exponent = token.lower().partition("e")[2].lstrip("+-").lstrip("0")
        if len(token) > 1000 or len(exponent) > 3 or int(exponent or 0) > 400:
            raise self.error(_OUT_OF_RANGE[0], token, _OUT_OF_RANGE[1])
        return token

    def unit(self, token: Token) -> str:
        unit = UNITS.get(token.lower())
        if unit is None:
            raise self.error(f"'{token}' is not a unit of time", token, _unit_hint(str(token)))
        return unit


def unquoted(token: str, quote: str) -> str:
    return token[1:-1].replace(quote * 2, quote)


def _negated(negation: Token | None, test: tree.Expression) -> tree.Expression:
    return test if negation is None else tree.Unary("not", test, span=test.span)


def _unit_hint(word: str) -> str:
    other = _OTHER_UNITS.get(word.lower().removesuffix("s"))
    if other is not None:
        return other
    clause = closest_clause(word)
    if clause is not None:
        return f"did you mean {clause}?"
    if re.fullmatch(r"[a-z]+\d+[a-z]+", word, re.IGNORECASE):
        return "a duration is one number and one unit: 90 min"
    close = did_you_mean(word, UNITS)
    return close if close and close.startswith("did") else "units are us, ms, s, min, h, d and their full words"
