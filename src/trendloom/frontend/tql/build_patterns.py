"""Patterns: from Lark's parse tree to ours."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from lark import Token
from lark.tree import Meta

from trendloom.frontend.tql.build_places import Children, PlaceBuilder, Word
from trendloom.frontend.tql.keywords import closest_clause
from trendloom.frontend.tql.tree import And, Event, Exists, Not, OperandWithin, Or, Pattern, Repeat, Seq


class PatternBuilder(PlaceBuilder):
    """One method per form of a pattern."""

    def event(self, meta: Meta, children: Children) -> Event:
        type_, *variable = children
        return Event(type_.text, variable[0].text if variable else None, span=self.at(meta))

    def restricted_event(self, meta: Meta, children: Children) -> Event:
        type_, *variable, predicate = children
        return Event(type_.text, variable[0].text if variable else None, predicate, span=self.at(meta))

    def seq_pattern(self, meta: Meta, children: Children) -> Seq:
        return Seq(tuple(children[1:]), span=self.at(meta))

    def or_pattern(self, meta: Meta, children: Children) -> Or:
        return Or(tuple(part for part in children if not isinstance(part, Token)), span=self.at(meta))

    def or_pattern_call(self, meta: Meta, children: Children) -> Or:
        return Or(self._several("OR", meta, children[1:]), span=self.at(meta))

    def and_pattern_call(self, meta: Meta, children: Children) -> And:
        return And(self._several("AND", meta, children[1:]), span=self.at(meta))

    def _several(self, word: str, meta: Meta, parts: Children) -> tuple[Pattern, ...]:
        if len(parts) < 2:
            raise self.error(f"{word} needs two parts or more", self.at(meta), f"{word}(p, q), or the one part alone")
        return tuple(parts)

    def not_pattern(self, meta: Meta, children: Children) -> Not:
        return Not(children[-1], span=self.at(meta))

    def exists_pattern(self, meta: Meta, children: Children) -> Exists:
        _, variable, pattern = children
        return Exists(variable.text, pattern, span=self.at(meta))

    def operand_within(self, meta: Meta, children: Children) -> OperandWithin:
        pattern, _, length = children
        return OperandWithin(pattern, length, span=self.at(meta))

    def plus(self, meta: Meta, children: Children) -> Repeat:
        return Repeat(children[0], 1, None, "+", span=self.at(meta))

    def star(self, meta: Meta, children: Children) -> Repeat:
        return Repeat(children[0], 0, None, "*", span=self.at(meta))

    def maybe(self, meta: Meta, children: Children) -> Repeat:
        return Repeat(children[0], 0, 1, "?", span=self.at(meta))

    def exactly(self, meta: Meta, children: Children) -> Repeat:
        pattern, written = children
        count = self.whole(written, least=0, what="A repetition")
        return self._braces(meta, pattern, count, count)

    def at_least(self, meta: Meta, children: Children) -> Repeat:
        pattern, least = children
        return self._braces(meta, pattern, self.whole(least, least=0, what="A repetition"), None)

    def from_to(self, meta: Meta, children: Children) -> Repeat:
        pattern, least, most = children
        count = self.whole(least, least=0, what="A repetition"), self.whole(most, least=0, what="A repetition")
        if count[1] < count[0]:
            raise self.error(
                f"{{{least},{most}}} ends before it begins", self.at_token(least), f"did you mean {{{most},{least}}}?"
            )
        return self._braces(meta, pattern, *count)

    def _braces(self, meta: Meta, pattern: Pattern, least: int, most: int | None) -> Repeat:
        if most == 0:
            raise self.error(
                "A pattern repeated zero times is nothing", self.at(meta), "leave it out, or write '?' or '*'"
            )
        return Repeat(pattern, least, most, "{}", span=self.at(meta))

    def named_repeat(self, meta: Meta, children: Children) -> Repeat:
        pattern, variable = children
        return cast(Repeat, replace(self._bound(pattern, variable, meta), span=self.at(meta)))

    def _bound(self, pattern: Pattern, variable: Word, meta: Meta) -> Pattern:
        """The repeated pattern with the variable given to its one event."""
        if isinstance(pattern, Repeat):
            return replace(pattern, pattern=self._bound(pattern.pattern, variable, meta))
        if isinstance(pattern, Event) and pattern.variable is None and pattern.predicate is None:
            return replace(pattern, variable=variable.text)
        raise self.error(
            f"'{variable.text}[]' must follow a plain type with its repetition",
            variable.span,
            f"Type+ {variable.text}[], or (Type {variable.text}: condition)+",
        )

    def missing_brackets_mistake(self, meta: Meta, children: Children) -> Pattern:
        variable = children[1]
        clause = closest_clause(variable.text)
        if clause:
            raise self.error(f"Unknown clause '{variable.text}'", variable.span, f"did you mean {clause}?")
        repeated = self.source.text[meta.start_pos : variable.start].strip()
        name = variable.text
        raise self.error(
            f"'{self.written(meta)}': after a repetition, a variable is written {name}[]",
            variable.span,
            f"a comma between {repeated} and {name}? Or {repeated} {name}[]?",
        )

    def missing_repeat_mistake(self, meta: Meta, children: Children) -> Pattern:
        type_, variable = (child.text for child in children)
        raise self.error(
            f"'{self.written(meta)}' has no repetition, so it is one event",
            self.at(meta),
            f"one event: {type_} {variable}; several: {type_}+ {variable}[]",
        )
