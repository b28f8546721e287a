"""Why a text is not a query: what was found, what was expected, and what was probably meant.

Runs only after a parse has failed, so it may take its time. Each check below looks at the place of the failure for one
well-known slip and returns its error, or None; the first that speaks wins, and the last one always does.
"""

from __future__ import annotations

from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from trendloom.errors import ParseError
from trendloom.frontend.source import Lexeme, SourceText
from trendloom.frontend.tql.foreign_signs import foreign_sign
from trendloom.frontend.tql.foreign_syntax import habit
from trendloom.frontend.tql.keywords import CLAUSES, closest_clause, is_reserved
from trendloom.frontend.tql.parse_failure import CLOSING, Failure, is_clause, unclosed

_COMPARISONS = {"=", "!=", "<>", "<", "<=", ">", ">="}
_JOIN = "conditions are joined with AND or OR"
_CHARACTERS = {
    "“": "strings stand in plain single quotes: 'text'",
    "”": "strings stand in plain single quotes: 'text'",
    "‘": "strings stand in plain single quotes: 'text'",
    "’": "strings stand in plain single quotes: 'text'",
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
    after = failure.lexemes[min(failure.number + 1, len(failure.lexemes) - 1)]
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


_CHECKS = (
    _nothing,
    _unclosed_quote,
    _quote_over_lines,
    habit,
    foreign_sign,
    _unknown_character,
    _unclosed_bracket,
    _stray_bracket,
    _misspelled_clause,
    _not_a_query,
    _incomplete_keyword,
    _misplaced_clause,
    _missing_limit,
    _after_a_pattern,
    _after_a_condition,
    _operator_slip,
    _reserved_word,
    _missing_comma,
)
