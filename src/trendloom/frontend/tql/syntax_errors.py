"""Why a text is not a query: what was found, what was expected, and what was probably meant.

Runs only after a parse has failed, so it may take its time. Each check below looks at the place of the failure for one
well-known slip and returns its error, or None; the first that speaks wins, and the last one always does.
"""

from __future__ import annotations

import re
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from trendloom.errors import ParseError
from trendloom.frontend.source import Lexeme, SourceText
from trendloom.frontend.tql.foreign_syntax import as_written_here, components, habit
from trendloom.frontend.tql.keywords import CLAUSES, closest_clause, is_reserved, write_name
from trendloom.frontend.tql.parse_failure import CLOSING, Failure, is_clause, unclosed

_COMPARISONS = {"=", "!=", "<>", "<", "<=", ">", ">="}
_JOIN = "conditions are joined with AND or OR"
_CHARACTERS = dict.fromkeys("“”‘’", "strings stand in plain single quotes: 'text'") | {
    "#": "a comment starts with --",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "−": "write a plain minus sign -",
    "–": "write a plain minus sign -",
}


def explain(grammar: Lark, start: str, source: SourceText, failure: UnexpectedInput) -> ParseError:
    """The error that a person should see for a failure of the parser."""
    lexemes = tuple(source.lexemes())
    place = _offset(source, failure)
    number = next((n for n, lexeme in enumerate(lexemes) if lexeme.end > place), len(lexemes) - 1)
    accepted = _accepted(grammar, start, source.text[: lexemes[number].start])
    found = Failure(source, lexemes, number, accepted)
    for check in _CHECKS:
        error = check(found)
        if error is not None:
            return error
    return _anything(found)


def _offset(source: SourceText, failure: UnexpectedInput) -> int:
    if isinstance(failure, UnexpectedToken) and failure.token.type != "$END":
        return failure.token.start_pos or 0
    if isinstance(failure, UnexpectedCharacters):
        return failure.pos_in_stream or 0
    return len(source.text)


def _accepted(grammar: Lark, start: str, good: str) -> frozenset[str]:
    """What may follow the good part of the text.

    The failed parser itself cannot say: LALR reduces before it notices that the next token is wrong.
    """
    parser: Any = grammar.parse_interactive(good, start=start)
    try:
        parser.exhaust_lexer()
    except UnexpectedInput:
        return frozenset()
    return frozenset(parser.accepts())


# ------------------------------------------------------------------------------------------------ characters


def _nothing(failure: Failure) -> ParseError | None:
    if len(failure.lexemes) > 1:
        return None
    return failure.error("The text holds no query", "a query has at least a pattern: PATTERN SEQ(A a, B b)")


def _unclosed_quote(failure: Failure) -> ParseError | None:
    if failure.found.kind == "open_string":
        return failure.error(
            "This string is never closed", "it ends with a single quote; a quote inside it is written ''"
        )
    if failure.found.kind == "open_quoted":
        closed = failure.source.text[failure.found.end : failure.found.end + 1] == "`"
        message = "A name in backquotes is not empty" if closed else "This name is never closed"
        return failure.error(message, "a name in backquotes ends with a backquote")
    return None


def _quote_over_lines(failure: Failure) -> ParseError | None:
    """`x = 'a` without its quote runs into the next string, and the failure shows up only behind that."""
    earlier = failure.before()
    if earlier.kind == "string" and "\n" in earlier.text and failure.found.kind in ("word", "open_string", "number"):
        return failure.error("This string runs over the end of its line", "is its closing quote missing?", earlier)
    return None


def _unknown_character(failure: Failure) -> ParseError | None:
    if failure.found.kind != "unknown":
        return None
    shown = failure.found.text
    hint = _CHARACTERS.get(shown, "names with characters other than letters, digits and _ stand in backquotes")
    return failure.error(f"Unexpected character {shown!r}", hint)


# -------------------------------------------------------------------------------------------------- brackets


def _unclosed_bracket(failure: Failure) -> ParseError | None:
    if not failure.open or not (failure.found.kind == "end" or is_clause(failure.found)):
        return None
    never = unclosed(failure.lexemes)
    innermost = next((bracket for bracket in reversed(failure.open) if bracket in never), None)
    if innermost is None:
        return None
    return failure.error(
        f"This '{innermost.text}' is never closed", f"a '{CLOSING[innermost.text]}' is missing", innermost
    )


def _stray_bracket(failure: Failure) -> ParseError | None:
    found = failure.found.text
    if found not in CLOSING.values():
        return None
    if not failure.open:
        return failure.error(f"This '{found}' closes nothing", "remove it, or open a bracket before")
    opened = failure.open[-1]
    if CLOSING[opened.text] == found:
        return None
    place = failure.source.span(opened.start, opened.end)
    where = f"line {place.line}, column {place.column}"
    return failure.error(
        f"'{opened.text}' ({where}) is closed by '{found}'", f"expected '{CLOSING[opened.text]}' instead"
    )


# --------------------------------------------------------------------------------------------------- clauses


def _misspelled_clause(failure: Failure) -> ParseError | None:
    """`PATERN A`; or `PATTERN A WHER a.x`, where WHER was taken for a variable and the word after it fails."""
    if failure.open:
        return None
    for distance in (1, 0):
        lexeme = failure.before(distance)
        is_name = lexeme.kind == "word" and failure.before(distance + 1).text not in (".", "[", "(")
        meant = closest_clause(lexeme.text) if is_name else None
        if meant is not None:
            return failure.error(f"Unknown clause '{lexeme.text}'", f"did you mean {meant}?", lexeme)
    return None


def _not_a_query(failure: Failure) -> ParseError | None:
    if failure.number > 0 or "PATTERN" not in failure.accepted:
        return None
    word = failure.found.text.upper()
    if word in ("SEQ", "OR", "AND", "NOT", "EXISTS", "(", "!", "~"):
        return failure.error(f"A query does not start with '{failure.found.text}'", "write PATTERN before a pattern")
    if word in ("SLIDE", "LIMIT"):
        return None
    hint = f"a query starts with one of its clauses: {', '.join(CLAUSES)}; or with QUERY name:"
    return failure.error(f"This is not a query: it starts with '{failure.found.text}'", hint)


def _incomplete_keyword(failure: Failure) -> ParseError | None:
    word = failure.found.text.upper()
    after = failure.after()
    if word in ("GROUP", "RANK") and f"{word}_BY" in failure.accepted and after.text.upper() != "BY":
        return failure.error(f"{word} is followed by BY", f"{word} BY ...")
    return None


def _misplaced_clause(failure: Failure) -> ParseError | None:
    if failure.open or "PATTERN" not in failure.accepted:
        return None
    match failure.found.text.upper():
        case "SLIDE":
            return failure.error("SLIDE without WITHIN before it", "WITHIN 10 min SLIDE 1 min")
        case "QUERY":
            return failure.error(
                "A second query, but the first one has no name", "open the first one with QUERY name: too"
            )
    return None


def _missing_limit(failure: Failure) -> ParseError | None:
    if "LIMIT" not in failure.accepted or not (failure.found.kind == "end" or is_clause(failure.found)):
        return None
    return failure.error("RANK BY needs a LIMIT: how many matches?", "RANK BY a.x DESC LIMIT 10")


# --------------------------------------------------------------------------------------------------- slips


def _after_a_pattern(failure: Failure) -> ParseError | None:
    """Patterns side by side, or joined by what does not join patterns."""
    if "VBAR" not in failure.accepted:
        return None
    found = failure.found.text
    if found.upper() == "AND":
        return failure.error("AND does not stand between patterns", "both, in any order: AND(p, q)")
    if not failure.open and found in (",", ";"):
        return failure.error(f"Unexpected '{found}' after a pattern", "patterns one after another: SEQ(p, q)")
    if not failure.open and failure.found.kind in ("word", "quoted") and not is_reserved(found):
        return failure.error(f"Expected another clause, found '{found}'", "patterns one after another: SEQ(p, q)")
    return None


def _after_a_condition(failure: Failure) -> ParseError | None:
    if failure.open or failure.clause not in ("WHERE", "HAVING"):
        return None
    found, earlier = failure.found, failure.before()
    if found.text in (".", "[", "(") and earlier.kind == "word" and failure.before(2).kind == "number":
        # `x > 5 b.y < 3`: b was taken for a unit of time.
        return failure.error(f"Expected an operator or another clause, found '{earlier.text}'", _JOIN, earlier)
    if "AND" not in failure.accepted:
        return None
    if found.text in (",", ";"):
        return failure.error(f"Unexpected '{found.text}' after a condition", _JOIN)
    if found.text == "|":
        return failure.error("'|' does not join conditions", _JOIN)
    if found.kind in ("word", "quoted", "number", "string") and not is_reserved(found.text):
        return failure.error(f"Expected {failure.expected}, found '{found.text}'", _JOIN)
    return None


def _operator_slip(failure: Failure) -> ParseError | None:
    found, earlier = failure.found.text, failure.before()
    if found == "=" and earlier.text == "=" and earlier.end == failure.found.start:
        return failure.error("'==' is not an operator", "equality is written '='", Lexeme("mark", "==", earlier.start))
    if found in _COMPARISONS and "AND" in failure.accepted and "COMPARE" not in failure.accepted:
        return failure.error("Comparisons do not chain", "write a < b AND b < c, or put brackets around one comparison")
    if found == "," and earlier.text == "{":
        return failure.error("Expected a number, found ','", "at most n times: {0,n}")
    if found.upper() == "NULL" and "NUMBER" in failure.accepted:
        return failure.error("NULL is not a value to compare with", "write x IS NULL or x IS NOT NULL")
    if found == "." and failure.before(3).text.upper() == "NEXT":
        variable = earlier.text
        return failure.error("NEXT takes a variable only", f"the attribute comes after it: NEXT({variable}).attribute")
    if found == ":" and "RPAR" in failure.accepted and failure.open:
        return failure.error("A condition follows one type and its variable", "(Type variable: condition)")
    return None


def _reserved_word(failure: Failure) -> ParseError | None:
    found = failure.found
    if found.kind != "word" or not is_reserved(found.text) or not ({"NAME", "QUOTED"} & failure.accepted):
        return None
    hint = f"to use it as a name, put it in backquotes: `{found.text}`"
    if is_clause(found) and not failure.open:
        return failure.error(f"Expected {failure.expected}, found the keyword {found.text}", hint)
    return failure.error(f"'{found.text}' is a reserved word, not a name", hint)


def _missing_comma(failure: Failure) -> ParseError | None:
    found, earlier = failure.found, failure.before()
    starts_something = found.kind in ("word", "quoted", "number", "string") or found.text in ("(", "!", "~")
    if not failure.open or "COMMA" not in failure.accepted or not starts_something:
        return None
    shown = f"'{earlier.text}' and '{found.text}'"
    return failure.error(f"Expected {failure.expected}, found '{found.text}'", f"a comma between {shown}?")


def _anything(failure: Failure) -> ParseError:
    expected = failure.expected
    if failure.found.kind != "end":
        return failure.error(f"Expected {expected}, found '{failure.found.text}'")
    if failure.number == 0:
        return failure.error(f"Expected {expected}, found nothing")
    last = failure.before()
    return failure.error(f"The text ends too early: expected {expected} after '{last.text}'")


# Signs and small words that mean something in other languages: `->`, `"x"`, `||`, `x::int`, `[a.card]`.


_ELSEWHERE = {"PREV", "LAG", "LEAD", "FIRST", "LAST"}


def _touches(first: Lexeme, second: Lexeme) -> bool:
    return first.end == second.start


# ---------------------------------------------------------------------------------------- quotes and comments


def _double_quotes(failure: Failure) -> ParseError | None:
    if failure.found.text != '"':
        return None
    inside, closed, _ = failure.source.text[failure.found.end :].partition('"')
    if not closed or "\n" in inside:
        return failure.error("Unexpected character '\"'", "strings stand in single quotes, odd names in backquotes")
    whole = Lexeme("unknown", f'"{inside}"', failure.found.start)
    if "STRING" in failure.accepted or not {"NAME", "ANY_NAME"} & failure.accepted:
        quoted = "'" + inside.replace("'", "''") + "'"
        return failure.error("Strings stand in single quotes", f"write {quoted}", whole)
    name = write_name(inside, reserved_allowed="ANY_NAME" in failure.accepted) if inside else "`name`"
    return failure.error("Names stand without quotes, odd ones in backquotes", f"write {name}", whole)


def _comment(failure: Failure) -> ParseError | None:
    after = failure.after()
    if failure.found.text != "/" or after.text not in ("*", "/") or not _touches(failure.found, after):
        return None
    sign = failure.found.text + after.text
    return failure.error(f"'{sign}' does not open a comment", "a comment starts with -- and ends with its line")


# ------------------------------------------------------------------------------------------------- patterns


def _arrow(failure: Failure) -> ParseError | None:
    """Esper: `a=A -> b=B`."""
    if failure.clause != "PATTERN" or failure.found.text not in ("-", "=", "["):
        return None
    if failure.found.text == "-" and failure.after().text != ">":
        return None
    first = next(n for n in range(failure.number, -1, -1) if failure.word(n) == "PATTERN") + 1
    end = next(n for n in range(first, len(failure.lexemes)) if is_clause(failure.lexemes[n]) or not failure.word(n))
    written = components(failure.lexemes[first:end])
    message = "Patterns one after another stand in SEQ, and a variable follows its type"
    return failure.error(message, f"write PATTERN {written or 'SEQ(A a, B b)'}")


def _after_semicolon(failure: Failure) -> ParseError | None:
    if failure.open or failure.before().text != ";" or "SEMICOLON" not in failure.accepted:
        return None
    if is_clause(failure.found):
        message = "A semicolon ends a query, and another one follows"
        return failure.error(message, "name each of them: QUERY one: PATTERN ... QUERY two: PATTERN ...")
    return failure.error("A semicolon ends a query", "patterns one after another: SEQ(p, q)", failure.before())


def _query_name(failure: Failure) -> ParseError | None:
    if failure.clause != "QUERY" or failure.accepted != {"COLON"}:
        return None
    first = next(n for n in range(failure.number, -1, -1) if failure.word(n) == "QUERY") + 1
    if is_clause(failure.found):
        return failure.error(
            f"Expected ':', found '{failure.found.text}'",
            f"write QUERY {failure.text(first, failure.number)}: {failure.found.text}",
        )
    colon = next((n for n in range(first, len(failure.lexemes)) if failure.word(n) == ":"), failure.number)
    name = failure.text(first, colon)
    return failure.error(f"Expected ':', found '{failure.found.text}'", f"an odd name: QUERY `{name}`:")


# ----------------------------------------------------------------------------------------------- conditions


def _doubled(failure: Failure) -> ParseError | None:
    found, after = failure.found, failure.after()
    if found.text == "&":
        doubled = after.text == "&" and _touches(found, after)
        return failure.error(f"'{'&&' if doubled else '&'}' does not join conditions", "conditions are joined with AND")
    if found.text == "|" and after.text == "|" and _touches(found, after):
        return failure.error("'||' does not join conditions", "conditions are joined with OR")
    if found.text == ":" and after.text == ":" and _touches(found, after):
        hint = f"leave out ::{failure.after(2).text}: numbers of all kinds compare with each other"
        return failure.error("There is no cast by '::'", hint)
    return None


def _exclamation(failure: Failure) -> ParseError | None:
    if failure.found.text != "!" or failure.clause not in ("WHERE", "HAVING"):
        return None
    return failure.error("'!' stands before patterns", "write NOT before a condition")


def _is_value(failure: Failure) -> ParseError | None:
    if failure.found.kind not in ("string", "number", "word") or "NULL" not in failure.accepted:
        return None
    negated = failure.before().text.upper() == "NOT"
    if failure.before(2 if negated else 1).text.upper() != "IS":
        return None
    operator, sign = ("IS NOT", "!=") if negated else ("IS", "=")
    value = f" {failure.found.text}" if failure.found.kind != "word" else f", not {operator}"
    return failure.error(f"{operator} is followed by NULL", f"write {sign}{value}")


def _list_in_brackets(failure: Failure) -> ParseError | None:
    if failure.found.text != "[" or failure.before().text.upper() != "IN":
        return None
    end = next((n for n in range(failure.number, len(failure.lexemes)) if failure.word(n) == "]"), failure.number + 1)
    return failure.error("A list stands in round brackets", f"write IN ({failure.text(failure.number + 1, end)})")


def _range_in_brackets(failure: Failure) -> ParseError | None:
    if failure.found.text != "," or not failure.open:
        return None
    opened = failure.lexemes.index(failure.open[-1])
    if failure.word(opened - 1) != "BETWEEN":
        return None
    low, high = failure.text(opened + 1, failure.number), failure.after().text
    return failure.error("A range is written with AND", f"write BETWEEN {low} AND {high}")


def _thousands(failure: Failure) -> ParseError | None:
    earlier, after = failure.before(), failure.after()
    if failure.found.text != "," or failure.open or earlier.kind != "number" or not re.fullmatch(r"\d{3}", after.text):
        return None
    return failure.error("Numbers have no comma", f"write {earlier.text}{after.text}")


def _key_in_brackets(failure: Failure) -> ParseError | None:
    """`[a.card]`, `[card AND city]`."""
    if not failure.open or failure.open[-1].text != "[" or "COMMA" not in failure.accepted:
        return None
    if failure.found.text != "." and failure.found.text.upper() != "AND":
        return None
    opened = failure.lexemes.index(failure.open[-1])
    end = next((n for n in range(opened, len(failure.lexemes)) if failure.word(n) == "]"), failure.number)
    names = [
        failure.lexemes[n].text
        for n in range(opened + 1, end)
        if failure.lexemes[n].kind in ("word", "quoted") and failure.word(n) != "AND" and failure.word(n + 1) != "."
    ]
    return failure.error("[...] lists attributes that all events share", f"write [{', '.join(names) or 'key'}]")


def _attribute_of_call(failure: Failure) -> ParseError | None:
    """`PREV(b).price`, `LAST(b).price`."""
    function = failure.before(4).text
    if failure.found.text != "." or failure.before().text != ")" or function.upper() not in _ELSEWHERE:
        return None
    written = f"{function}({failure.before(2).text}).{failure.after().text or 'x'}"
    hint = f"write {as_written_here(written)}"
    if function.upper() in ("PREV", "LAG"):
        hint += f", and {failure.before(2).text}[i] for the event after it"
    return failure.error(f"There is no {function}", hint, failure.before(4))


def _cast(failure: Failure) -> ParseError | None:
    if failure.found.text.upper() != "AS" or not failure.open:
        return None
    opened = failure.lexemes.index(failure.open[-1])
    if failure.word(opened - 1) != "CAST":
        return None
    value = failure.text(opened + 1, failure.number)
    hint = f"write {value}: numbers of all kinds compare with each other"
    return failure.error("There is no CAST", hint, failure.lexemes[opened - 1])


# --------------------------------------------------------------------------------------------- other clauses


def _group_by_variable(failure: Failure) -> ParseError | None:
    if failure.clause != "GROUP":
        return None
    if failure.found.text == ".":
        message = "GROUP BY takes attributes, which are the same in all events of a match"
        return failure.error(message, f"write GROUP BY {failure.after().text}", failure.before())
    if failure.found.text == "(" or failure.found.kind == "number":
        return failure.error("GROUP BY takes attributes alone", "add a column to the input, then GROUP BY its name")
    return None


def _alias(failure: Failure) -> ParseError | None:
    if failure.clause != "RETURN" or "AS" not in failure.accepted or failure.found.kind not in ("word", "quoted"):
        return None
    if failure.open or is_reserved(failure.found.text) or failure.after().text in (".", "[", "("):
        return None
    return failure.error(f"A column is named with AS, found '{failure.found.text}'", f"write AS {failure.found.text}")


def _quoted_length(failure: Failure) -> ParseError | None:
    if failure.before().text.upper() not in ("WITHIN", "SLIDE"):
        return None
    if failure.found.kind == "string":
        return failure.error(
            "A duration stands without quotes", f"write {failure.found.text[1:-1].strip() or '10 min'}"
        )
    if failure.found.text == "(":
        end = next((n for n in range(failure.number, len(failure.lexemes)) if failure.word(n) == ")"), None)
        inside = failure.text(failure.number + 1, end) if end else "10 min"
        return failure.error("A duration stands without brackets", f"write {inside}")
    return None


_CHECKS = (
    _nothing, _unclosed_quote, _quote_over_lines, habit, _double_quotes, _comment, _arrow, _after_semicolon,
    _query_name, _doubled, _exclamation, _is_value, _list_in_brackets, _range_in_brackets, _thousands,
    _key_in_brackets, _attribute_of_call, _cast, _group_by_variable, _alias, _quoted_length, _unknown_character,
    _unclosed_bracket, _stray_bracket, _misspelled_clause, _not_a_query, _incomplete_keyword, _misplaced_clause,
    _missing_limit, _after_a_pattern, _after_a_condition, _operator_slip, _reserved_word, _missing_comma,
)  # fmt: skip
"""The first that returns an error decides."""
