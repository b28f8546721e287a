"""Signs and small words that mean something in other languages: `->`, `"x"`, `||`, `x::int`, `A AS a`, `[a.card]`.

Like `diagnosis`, of which this is a part: each check looks at the place of the failure for one slip and returns its
error, or None. The hint is the text to write, with the names that stand in the query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trendloom.errors import ParseError
from trendloom.frontend.source import Lexeme
from trendloom.frontend.tql.keywords import is_reserved, write_name
from trendloom.frontend.tql.parse_failure import Failure, is_clause

# Small pieces of other languages, written in ours, for hints: `LAST(b.x)` is `b[last].x`, `a=A` is `A a`.
#
# Works on text, without parsing it: what it does not recognise it leaves as it is, since a person reads the result.


_OF = r"\(\s*(\w+)\s*(?:\)\s*\.\s*(\w+)|\.\s*(\w+)\s*(?:,\s*1\s*)?\))"
"""`(b.x)`, `(b.x, 1)` or `(b).x`."""

_PLACES = {"last": "last", "first": "first", "prev": "i-1", "lag": "i-1"}


def as_written_here(text: str) -> str:
    """FIRST, LAST, PREV, LAG, NEXT and LEAD of MATCH_RECOGNIZE and SQL as indexes of a variable."""
    before = {found[1] for found in re.finditer(rf"(?i)\b(?:prev|lag)\s*{_OF}", text)}
    text = re.sub(
        rf"(?i)\b(first|last|prev|lag)\s*{_OF}",
        lambda found: f"{found[2]}[{_PLACES[found[1].lower()]}].{found[3] or found[4]}",
        text,
    )
    text = re.sub(rf"(?i)\b(?:next|lead)\s*{_OF}", lambda found: f"NEXT({found[1]}).{found[2] or found[3]}", text)
    text = re.sub(r"(?i)\b(?:final|running)\s+", "", text)
    for name in before:  # the event itself, beside the one before it
        text = re.sub(rf"\b{re.escape(name)}\s*\.", f"{name}[i].", text)
    return text


def definitions(text: str) -> list[str]:
    """The conditions of `DEFINE a AS condition, b AS condition`."""
    parts = re.split(r"(?i)(?:^|,)\s*\w+\s+AS\s+", text)
    found = [as_written_here(part.strip()) for part in parts if part.strip()]
    return [f"({part})" if re.search(r"(?i)\bor\b", part) and len(found) > 1 else part for part in found]


def components(lexemes: Sequence[Lexeme]) -> str | None:
    """Esper's `every a=A -> b=B` as SEQ(A a, B b); None where it says more than that."""
    text = " ".join(lexeme.text for lexeme in lexemes).strip("[] ")
    parts = [part.strip() for part in re.sub(r"- >", "->", text).split("->")]
    found = []
    for part in parts:
        plain = re.fullmatch(r"(?i)(?:every\s+)?(?:(\w+)\s*=\s*(\w+)|(\w+)(?:\s+(\w+))?)", part)
        if plain is None:
            return None
        type_, variable = (plain[2], plain[1]) if plain[1] else (plain[3], plain[4])
        found.append(f"{type_} {variable}" if variable else type_)
    return found[0] if len(found) == 1 else f"SEQ({', '.join(found)})"


_ELSEWHERE = {"PREV", "LAG", "LEAD", "FIRST", "LAST"}


def foreign_sign(failure: Failure) -> ParseError | None:
    """The error for a sign of another language at the place of the failure."""
    return next((error for error in (check(failure) for check in _CHECKS) if error is not None), None)


def _next(failure: Failure, distance: int = 1) -> Lexeme:
    return failure.lexemes[min(failure.number + distance, len(failure.lexemes) - 1)]


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
    after = _next(failure)
    if failure.found.text != "/" or after.text not in ("*", "/") or not _touches(failure.found, after):
        return None
    sign = failure.found.text + after.text
    return failure.error(f"'{sign}' does not open a comment", "a comment starts with -- and ends with its line")


# ------------------------------------------------------------------------------------------------- patterns


def _arrow(failure: Failure) -> ParseError | None:
    """Esper: `a=A -> b=B`."""
    if failure.clause != "PATTERN" or failure.found.text not in ("-", "=", "["):
        return None
    if failure.found.text == "-" and _next(failure).text != ">":
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
    found, after = failure.found, _next(failure)
    if found.text == "&":
        doubled = after.text == "&" and _touches(found, after)
        return failure.error(f"'{'&&' if doubled else '&'}' does not join conditions", "conditions are joined with AND")
    if found.text == "|" and after.text == "|" and _touches(found, after):
        return failure.error("'||' does not join conditions", "conditions are joined with OR")
    if found.text == ":" and after.text == ":" and _touches(found, after):
        hint = f"leave out ::{_next(failure, 2).text}: numbers of all kinds compare with each other"
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
    low, high = failure.text(opened + 1, failure.number), _next(failure).text
    return failure.error("A range is written with AND", f"write BETWEEN {low} AND {high}")


def _thousands(failure: Failure) -> ParseError | None:
    earlier, after = failure.before(), _next(failure)
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
    written = f"{function}({failure.before(2).text}).{_next(failure).text or 'x'}"
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
        return failure.error(message, f"write GROUP BY {_next(failure).text}", failure.before())
    if failure.found.text == "(" or failure.found.kind == "number":
        return failure.error("GROUP BY takes attributes alone", "add a column to the input, then GROUP BY its name")
    return None


def _alias(failure: Failure) -> ParseError | None:
    if failure.clause != "RETURN" or "AS" not in failure.accepted or failure.found.kind not in ("word", "quoted"):
        return None
    if failure.open or is_reserved(failure.found.text) or _next(failure).text in (".", "[", "("):
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
    _double_quotes,
    _comment,
    _arrow,
    _after_semicolon,
    _query_name,
    _doubled,
    _exclamation,
    _is_value,
    _list_in_brackets,
    _range_in_brackets,
    _thousands,
    _key_in_brackets,
    _attribute_of_call,
    _cast,
    _group_by_variable,
    _alias,
    _quoted_length,
)
