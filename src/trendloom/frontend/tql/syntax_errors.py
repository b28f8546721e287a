"""Why a text is not a query: what was found, what was expected, and what was probably meant.

Runs only after a parse has failed, so it may take its time. Each function below looks at the place of the failure for
well-known slips of one kind and yields an error for each; the first error wins, and the last function always has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from trendloom.errors import ParseError
from trendloom.frontend.source import Lexeme, SourceText
from trendloom.frontend.tql.foreign_syntax import as_written_here, components, foreign_phrases
from trendloom.frontend.tql.keywords import CLAUSES, closest_clause, is_reserved, write_name, write_string
from trendloom.frontend.tql.parse_failure import CLOSING, Failure, is_clause, unclosed

_COMPARISONS = {"=", "!=", "<>", "<", "<=", ">", ">="}
_JOIN = "conditions are joined with AND or OR"
_SEQ = "patterns one after another: SEQ(p, q)"
_NO_CAST = "numbers of all kinds compare with each other"
_CHARACTERS = dict.fromkeys("“”‘’", "strings stand in plain single quotes: 'text'") | {
    "#": "a comment starts with --",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "−": "write a plain minus sign -",
    "–": "write a plain minus sign -",
}
_VALUES = ("word", "quoted", "number", "string")

Errors = Iterator[ParseError]


def explain(grammar: Lark, start: str, source: SourceText, failure: UnexpectedInput) -> ParseError:
    """The error that a person should see for a failure of the parser."""
    lexemes = tuple(source.lexemes())
    place = _offset(source, failure)
    number = next((n for n, lexeme in enumerate(lexemes) if lexeme.end > place), len(lexemes) - 1)
    accepted = _accepted(grammar, start, source.text[: lexemes[number].start])
    found = Failure(source, lexemes, number, accepted)
    return next(error for check in _CHECKS for error in check(found))


def _offset(source: SourceText, failure: UnexpectedInput) -> int:
    if isinstance(failure, UnexpectedToken) and failure.token.type != "$END":
        return failure.token.start_pos or 0
    if isinstance(failure, UnexpectedCharacters):
        return failure.pos_in_stream or 0
    return len(source.text)


def _accepted(grammar: Lark, start: str, good: str) -> frozenset[str]:
    """The terminals that may follow the good part of the text.

    The failed parser itself does not have them: LALR reduces before it notices that the next token is wrong.
    """
    parser: Any = grammar.parse_interactive(good, start=start)
    try:
        parser.exhaust_lexer()
    except UnexpectedInput:
        return frozenset()
    return frozenset(parser.accepts())


# ------------------------------------------------------------------------- quotes, comments and characters


def _quotes(failure: Failure) -> Errors:
    found, earlier = failure.found, failure.before()
    if len(failure.lexemes) == 1:
        yield failure.error("The text holds no query", "a query has at least a pattern: PATTERN SEQ(A a, B b)")
    if found.kind == "open_string":
        hint = "it ends with a single quote; a quote inside it is written ''"
        yield failure.error("This string is never closed", hint)
    if found.kind == "open_quoted":
        empty = failure.source.text[found.end : found.end + 1] == "`"
        message = "A name in backquotes is not empty" if empty else "This name is never closed"
        yield failure.error(message, "a name in backquotes ends with a backquote")
    # `x = 'a` without its quote runs into the next string, and the failure shows up only behind that
    if earlier.kind == "string" and "\n" in earlier.text and found.kind in ("word", "open_string", "number"):
        yield failure.error("This string runs over the end of its line", "is its closing quote missing?", earlier)


def _double_quotes(failure: Failure) -> Errors:
    if failure.found.text != '"':
        return
    inside, closed, _ = failure.source.text[failure.found.end :].partition('"')
    if not closed or "\n" in inside:
        yield failure.error("Unexpected character '\"'", "strings stand in single quotes, odd names in backquotes")
    whole = Lexeme("unknown", f'"{inside}"', failure.found.start)
    if "STRING" in failure.accepted or not {"NAME", "ANY_NAME"} & failure.accepted:
        yield failure.error("Strings stand in single quotes", f"write {write_string(inside)}", whole)
    name = write_name(inside, reserved_allowed="ANY_NAME" in failure.accepted) if inside else "`name`"
    yield failure.error("Names stand without quotes, odd ones in backquotes", f"write {name}", whole)


def _comment(failure: Failure) -> Errors:
    if failure.touching in ("/*", "//"):
        hint = "a comment starts with -- and ends with its line"
        yield failure.error(f"'{failure.touching}' does not open a comment", hint)


def _unknown_character(failure: Failure) -> Errors:
    if failure.found.kind == "unknown":
        shown = failure.found.text
        hint = _CHARACTERS.get(shown, "names with characters other than letters, digits and _ stand in backquotes")
        yield failure.error(f"Unexpected character {shown!r}", hint)


# -------------------------------------------------------------------------- signs and forms of other languages


def _arrow(failure: Failure) -> Errors:
    """Esper: `a=A -> b=B`."""
    found, after = failure.found.text, failure.after().text
    if failure.clause == "PATTERN" and (found in ("=", "[") or (found == "-" and after == ">")):
        first = failure.last("PATTERN") + 1
        end = next(
            n for n in range(first, len(failure.lexemes)) if is_clause(failure.lexemes[n]) or not failure.word(n)
        )
        written = components(failure.lexemes[first:end])
        message = "Patterns one after another stand in SEQ, and a variable follows its type"
        yield failure.error(message, f"write PATTERN {written or 'SEQ(A a, B b)'}")


def _several_queries(failure: Failure) -> Errors:
    found = failure.found
    if not failure.open and failure.before().text == ";" and "SEMICOLON" in failure.accepted:
        if is_clause(found):
            message = "A semicolon ends a query, and another one follows"
            yield failure.error(message, "name each of them: QUERY one: PATTERN ... QUERY two: PATTERN ...")
        yield failure.error("A semicolon ends a query", _SEQ, failure.before())
    if failure.clause == "QUERY" and failure.accepted == {"COLON"}:
        first = failure.last("QUERY") + 1
        if is_clause(found):
            hint = f"write QUERY {failure.text(first, failure.number)}: {found.text}"
        else:
            hint = f"an odd name: QUERY `{failure.text(first, failure.first(first, ':', failure.number))}`:"
        yield failure.error(f"Expected ':', found '{found.text}'", hint)


def _doubled(failure: Failure) -> Errors:
    found, touching = failure.found.text, failure.touching
    if found == "&":
        shown = "&&" if touching == "&&" else "&"
        yield failure.error(f"'{shown}' does not join conditions", "conditions are joined with AND")
    if touching == "||":
        yield failure.error("'||' does not join conditions", "conditions are joined with OR")
    if touching == "::":
        yield failure.error("There is no cast by '::'", f"leave out ::{failure.after(2).text}: {_NO_CAST}")
    if found == "!" and failure.clause in ("WHERE", "HAVING"):
        yield failure.error("'!' stands before patterns", "write NOT before a condition")


def _values(failure: Failure) -> Errors:
    found, earlier, after = failure.found, failure.before(), failure.after()
    if found.kind in ("string", "number", "word") and "NULL" in failure.accepted:
        negated = earlier.text.upper() == "NOT"
        if failure.before(2 if negated else 1).text.upper() == "IS":
            operator, sign = ("IS NOT", "!=") if negated else ("IS", "=")
            value = f" {found.text}" if found.kind != "word" else f", not {operator}"
            yield failure.error(f"{operator} is followed by NULL", f"write {sign}{value}")
    if found.text == "[" and earlier.text.upper() == "IN":
        end = failure.first(failure.number, "]", failure.number + 1)
        yield failure.error("A list stands in round brackets", f"write IN ({failure.text(failure.number + 1, end)})")
    if found.text == "," and failure.word(failure.opened - 1) == "BETWEEN":
        low = failure.text(failure.opened + 1, failure.number)
        yield failure.error("A range is written with AND", f"write BETWEEN {low} AND {after.text}")
    three_digits = re.fullmatch(r"\d{3}", after.text)
    if found.text == "," and not failure.open and earlier.kind == "number" and three_digits:
        yield failure.error("Numbers have no comma", f"write {earlier.text}{after.text}")


def _key_in_brackets(failure: Failure) -> Errors:
    """`[a.card]`, `[card AND city]`."""
    in_brackets = failure.open and failure.open[-1].text == "[" and "COMMA" in failure.accepted
    if in_brackets and failure.found.text.upper() in (".", "AND"):
        end = failure.first(failure.opened, "]", failure.number)
        names = [
            failure.lexemes[n].text
            for n in range(failure.opened + 1, end)
            if failure.lexemes[n].kind in ("word", "quoted") and failure.word(n) != "AND" and failure.word(n + 1) != "."
        ]
        yield failure.error("[...] lists attributes that all events share", f"write [{', '.join(names) or 'key'}]")


def _calls(failure: Failure) -> Errors:
    """`PREV(b).price`, `LAST(b).price`, `CAST(b.price AS int)`."""
    found, function, variable = failure.found.text, failure.before(4), failure.before(2).text
    called = function.text.upper()
    if found == "." and failure.before().text == ")" and called in ("PREV", "LAG", "LEAD", "FIRST", "LAST"):
        written = f"{function.text}({variable}).{failure.after().text or 'x'}"
        hint = f"write {as_written_here(written)}"
        if called in ("PREV", "LAG"):
            hint += f", and {variable}[i] for the event after it"
        yield failure.error(f"There is no {function.text}", hint, function)
    if found.upper() == "AS" and failure.word(failure.opened - 1) == "CAST":
        value = failure.text(failure.opened + 1, failure.number)
        yield failure.error("There is no CAST", f"write {value}: {_NO_CAST}", failure.lexemes[failure.opened - 1])


def _clause_contents(failure: Failure) -> Errors:
    """GROUP BY of anything but attributes, names without AS, lengths in quotes or brackets."""
    found, after = failure.found, failure.after().text
    if failure.clause == "GROUP" and found.text == ".":
        message = "GROUP BY takes attributes, which are the same in all events of a match"
        yield failure.error(message, f"write GROUP BY {after}", failure.before())
    if failure.clause == "GROUP" and (found.text == "(" or found.kind == "number"):
        yield failure.error("GROUP BY takes attributes alone", "add a column to the input, then GROUP BY its name")
    is_name = found.kind in ("word", "quoted") and not is_reserved(found.text) and after not in (".", "[", "(")
    if failure.clause == "RETURN" and "AS" in failure.accepted and is_name and not failure.open:
        yield failure.error(f"A column is named with AS, found '{found.text}'", f"write AS {found.text}")
    if failure.before().text.upper() in ("WITHIN", "SLIDE"):
        if found.kind == "string":
            hint = f"write {found.text[1:-1].strip() or '10 min'}"
            yield failure.error("A duration stands without quotes", hint)
        if found.text == "(":
            end = failure.first(failure.number, ")", 0)
            inside = failure.text(failure.number + 1, end) if end else "10 min"
            yield failure.error("A duration stands without brackets", f"write {inside}")


# ---------------------------------------------------------------------------------------- brackets and clauses


def _brackets(failure: Failure) -> Errors:
    found = failure.found.text
    if failure.found.kind == "end" or is_clause(failure.found):
        never = unclosed(failure.lexemes)
        for bracket in reversed(failure.open):
            if bracket in never:
                hint = f"a '{CLOSING[bracket.text]}' is missing"
                yield failure.error(f"This '{bracket.text}' is never closed", hint, bracket)
    if found in CLOSING.values():
        if not failure.open:
            yield failure.error(f"This '{found}' closes nothing", "remove it, or open a bracket before")
        elif CLOSING[failure.open[-1].text] != found:
            opened = failure.open[-1]
            place = failure.source.span(opened.start, opened.end)
            where = f"line {place.line}, column {place.column}"
            hint = f"expected '{CLOSING[opened.text]}' instead"
            yield failure.error(f"'{opened.text}' ({where}) is closed by '{found}'", hint)


def _misspelled_clause(failure: Failure) -> Errors:
    """`PATERN A`; or `PATTERN A WHER a.x`, where WHER was taken for a variable and the word after it fails."""
    for distance in (1, 0) if not failure.open else ():
        lexeme = failure.before(distance)
        is_name = lexeme.kind == "word" and failure.before(distance + 1).text not in (".", "[", "(")
        meant = closest_clause(lexeme.text) if is_name else None
        if meant is not None:
            yield failure.error(f"Unknown clause '{lexeme.text}'", f"did you mean {meant}?", lexeme)


def _misplaced_clause(failure: Failure) -> Errors:
    found, word = failure.found, failure.found.text.upper()
    begins = "PATTERN" in failure.accepted
    if begins and failure.number == 0 and word not in ("SLIDE", "LIMIT"):
        if word in ("SEQ", "OR", "AND", "NOT", "EXISTS", "(", "!", "~"):
            yield failure.error(f"A query does not start with '{found.text}'", "write PATTERN before a pattern")
        hint = f"a query starts with one of its clauses: {', '.join(CLAUSES)}; or with QUERY name:"
        yield failure.error(f"This is not a query: it starts with '{found.text}'", hint)
    if word in ("GROUP", "RANK") and f"{word}_BY" in failure.accepted and failure.after().text.upper() != "BY":
        yield failure.error(f"{word} is followed by BY", f"{word} BY ...")
    if begins and not failure.open and word == "SLIDE":
        yield failure.error("SLIDE without WITHIN before it", "WITHIN 10 min SLIDE 1 min")
    if begins and not failure.open and word == "QUERY":
        hint = "open the first one with QUERY name: too"
        yield failure.error("A second query, but the first one has no name", hint)
    if "LIMIT" in failure.accepted and (found.kind == "end" or is_clause(found)):
        yield failure.error("RANK BY needs a LIMIT: how many matches?", "RANK BY a.x DESC LIMIT 10")


# ------------------------------------------------------------------------------------------------------ slips


def _after_a_pattern(failure: Failure) -> Errors:
    """Patterns side by side, or joined by what does not join patterns."""
    found = failure.found.text
    if "VBAR" in failure.accepted and found.upper() == "AND":
        yield failure.error("AND does not stand between patterns", "both, in any order: AND(p, q)")
    if "VBAR" in failure.accepted and not failure.open:
        if found in (",", ";"):
            yield failure.error(f"Unexpected '{found}' after a pattern", _SEQ)
        if failure.found.kind in ("word", "quoted") and not is_reserved(found):
            yield failure.error(f"Expected another clause, found '{found}'", _SEQ)


def _after_a_condition(failure: Failure) -> Errors:
    if failure.open or failure.clause not in ("WHERE", "HAVING"):
        return
    found, earlier = failure.found, failure.before()
    if found.text in (".", "[", "(") and earlier.kind == "word" and failure.before(2).kind == "number":
        # `x > 5 b.y < 3`: b was taken for a unit of time.
        yield failure.error(f"Expected an operator or another clause, found '{earlier.text}'", _JOIN, earlier)
    if "AND" in failure.accepted:
        if found.text in (",", ";"):
            yield failure.error(f"Unexpected '{found.text}' after a condition", _JOIN)
        if found.text == "|":
            yield failure.error("'|' does not join conditions", _JOIN)
        if found.kind in _VALUES and not is_reserved(found.text):
            yield failure.error(f"Expected {failure.expected}, found '{found.text}'", _JOIN)


def _operators(failure: Failure) -> Errors:
    found, earlier = failure.found.text, failure.before()
    if found == "=" and earlier.text == "=" and earlier.end == failure.found.start:
        yield failure.error("'==' is not an operator", "equality is written '='", Lexeme("mark", "==", earlier.start))
    if found in _COMPARISONS and "AND" in failure.accepted and "COMPARE" not in failure.accepted:
        yield failure.error("Comparisons do not chain", "write a < b AND b < c, or put brackets around one comparison")
    if found == "," and earlier.text == "{":
        yield failure.error("Expected a number, found ','", "at most n times: {0,n}")
    if found.upper() == "NULL" and "NUMBER" in failure.accepted:
        yield failure.error("NULL is not a value to compare with", "write x IS NULL or x IS NOT NULL")
    if found == "." and failure.before(3).text.upper() == "NEXT":
        hint = f"the attribute comes after it: NEXT({earlier.text}).attribute"
        yield failure.error("NEXT takes a variable only", hint)
    if found == ":" and "RPAR" in failure.accepted and failure.open:
        yield failure.error("A condition follows one type and its variable", "(Type variable: condition)")


def _reserved_word(failure: Failure) -> Errors:
    found = failure.found
    if found.kind == "word" and is_reserved(found.text) and {"NAME", "QUOTED"} & failure.accepted:
        hint = f"to use it as a name, put it in backquotes: `{found.text}`"
        if is_clause(found) and not failure.open:
            yield failure.error(f"Expected {failure.expected}, found the keyword {found.text}", hint)
        yield failure.error(f"'{found.text}' is a reserved word, not a name", hint)


def _missing_comma(failure: Failure) -> Errors:
    found = failure.found
    begins_something = found.kind in _VALUES or found.text in ("(", "!", "~")
    if failure.open and "COMMA" in failure.accepted and begins_something:
        hint = f"a comma between '{failure.before().text}' and '{found.text}'?"
        yield failure.error(f"Expected {failure.expected}, found '{found.text}'", hint)


def _anything(failure: Failure) -> Errors:
    expected = failure.expected
    if failure.found.kind != "end":
        yield failure.error(f"Expected {expected}, found '{failure.found.text}'")
    if failure.number == 0:
        yield failure.error(f"Expected {expected}, found nothing")
    yield failure.error(f"The text ends too early: expected {expected} after '{failure.before().text}'")


_CHECKS = (
    _quotes, foreign_phrases, _double_quotes, _comment, _arrow, _several_queries, _doubled, _values, _key_in_brackets,
    _calls, _clause_contents, _unknown_character, _brackets, _misspelled_clause, _misplaced_clause, _after_a_pattern,
    _after_a_condition, _operators, _reserved_word, _missing_comma, _anything,
)  # fmt: skip
"""In the order in which they are tried."""
