"""What people write by habit, from SQL, MATCH_RECOGNIZE, Esper, Flink and KSQL, and what to write here instead.

A habit is a phrase. It is looked for only at the place where the parser has given up, so none of its words is reserved:
a type may be named Every. The hint is the text to write, with the names that stand in the query. Cost: a few words are
compared, once per failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from trendloom.errors import ParseError, option
from trendloom.frontend.tql.foreign_signs import as_written_here, components, definitions
from trendloom.frontend.tql.parse_failure import Failure, is_clause

Advice = tuple[str, str]
"""What is wrong, and what to write."""

_ENDS = {"PARTITION", "ORDER", "DEFINE", "MEASURES", "ONE", "ALL", "AFTER", "FROM", "SELECT", "WINDOW", "EMIT"}
"""Words that end a clause beside our own."""


def habit(failure: Failure) -> ParseError | None:
    """The error for a phrase of another language at or right before the place of the failure."""
    if any(lexeme.text.upper() == "MATCH_RECOGNIZE" for lexeme in failure.lexemes):
        return _match_recognize(failure)
    for number in range(max(0, failure.number - 3), failure.number + 1):
        for phrase, advise in _PHRASES.items():
            words = phrase.split()
            if failure.number > number + len(words) + 1 or not _stands(failure, number, words):
                continue
            advice = advise(failure, number)
            if advice is not None:
                return failure.error(*advice, at=failure.lexemes[number])
    return None


def _stands(failure: Failure, number: int, words: list[str]) -> bool:
    return [failure.word(number + step) for step in range(len(words))] == words


def _clause_end(failure: Failure, number: int) -> int:
    """Where the clause ends that began before a lexeme: at the next one, or at a bracket that it did not open."""
    depth = 0
    for at in range(number, len(failure.lexemes)):
        text = failure.word(at)
        depth += (text in "([{") - (text in ")]}") if text else 0
        if not text or depth < 0 or text == ";" or (depth == 0 and (is_clause(failure.lexemes[at]) or text in _ENDS)):
            return at
    return len(failure.lexemes) - 1


def _rest(failure: Failure, number: int) -> str:
    """The text of a clause from a lexeme on."""
    return failure.text(number, _clause_end(failure, number))


def _names(failure: Failure, number: int) -> str:
    """The attributes of a list, without the variables in front of them."""
    found = []
    for at in range(number, _clause_end(failure, number)):
        lexeme = failure.lexemes[at]
        if (
            lexeme.kind in ("word", "quoted")
            and failure.word(at + 1) != "."
            and failure.word(at) not in ("ASC", "DESC")
        ):
            found.append(lexeme.text)
    return ", ".join(found) or "key"


def _has(failure: Failure, word: str) -> bool:
    return any(lexeme.kind == "word" and lexeme.text.upper() == word for lexeme in failure.lexemes)


# --------------------------------------------------------------------------------------- MATCH_RECOGNIZE and SQL


def _match_recognize(failure: Failure) -> ParseError:
    word = next(lexeme for lexeme in failure.lexemes if lexeme.text.upper() == "MATCH_RECOGNIZE")
    return failure.error(
        "MATCH_RECOGNIZE is a query by itself here",
        "PATTERN SEQ(A a, B+ b[]) WHERE [key] AND ... RETURN ... WITHIN 1 h: PARTITION BY is [key], DEFINE is WHERE, "
        "MEASURES is RETURN, and A and B are types of events",
        word,
    )


def _partition_by(failure: Failure, number: int) -> Advice:
    key = f"[{_names(failure, number + 2)}]"
    return "There is no PARTITION BY", f"write WHERE {key}" + (" AND ..." if _has(failure, "WHERE") else "")


def _order_by(failure: Failure, number: int) -> Advice:
    rest = _rest(failure, number + 2)
    message = "There is no ORDER BY: events are in the order of their time"
    if re.fullmatch(r"\w+( ASC)?", rest, re.IGNORECASE):
        return message, f"leave it out; {option('time', rest.split()[0])} names the column of the time"
    best, end = rest.partition(",")[0] or "a.x DESC", _clause_end(failure, number + 2)
    most = failure.word(end + 1) if failure.word(end) == "LIMIT" else "10"
    return message, f"leave it out and sort the rows of the result; the best alone: RANK BY {best} LIMIT {most}"


def _define(failure: Failure, number: int) -> Advice:
    written = definitions(_rest(failure, number + 1))
    hint = f"write WHERE {' AND '.join(written)}" if written else "write WHERE a.x > 1 AND b.x > a.x"
    return "There is no DEFINE: conditions stand in WHERE", hint


def _measures(failure: Failure, number: int) -> Advice:
    return "There is no MEASURES", f"write RETURN {as_written_here(_rest(failure, number + 1)) or 'a.x AS name'}"


def _one_row(failure: Failure, number: int) -> Advice:
    return "Every match is one row already", "leave out ONE ROW PER MATCH"


def _all_rows(failure: Failure, number: int) -> Advice:
    return "Every match is one row", "leave it out: RETURN TRENDS lists all events of a match in the column events"


def _after_match(failure: Failure, number: int) -> Advice:
    hint = "leave it out; SEMANTICS skip-till-next-match and SEMANTICS contiguous find fewer matches"
    return "There is no AFTER MATCH: matches may overlap", hint


def _select(failure: Failure, number: int) -> Advice | None:
    if failure.open:
        return "There are no queries inside queries", "list the values: IN ('a', 'b')"
    items = _rest(failure, number + 1)
    returned = "TRENDS" if items in ("*", "") else as_written_here(items)
    without = "; there is no FROM: events are given beside the query" if _has(failure, "FROM") else ""
    return "There is no SELECT", f"write RETURN {returned}{without}"


def _from(failure: Failure, number: int) -> Advice:
    return "There is no FROM", f"leave it out: events are given beside the query, {option('events', 'FILE')}"


def _distinct(failure: Failure, number: int) -> Advice:
    inside = bool(failure.open)
    hint = "take the rows (RETURN TRENDS) and count there" if inside else "remove equal rows from the result"
    return "There is no DISTINCT", f"leave it out, and {hint}"


def _case(failure: Failure, number: int) -> Advice:
    return "There is no CASE", "write the cases as conditions: a.x > 1 AND ... OR a.x <= 1 AND ..."


def _moment(failure: Failure, number: int) -> Advice | None:
    text = failure.lexemes[min(number + 1, len(failure.lexemes) - 1)]
    return ("A time is written as plain text", f"write {text.text}") if text.kind == "string" else None


def _over(failure: Failure, number: int) -> Advice:
    hint = "leave it out: b[i] and b[i-1] are an event and the one before it, NEXT(b) is the one after it"
    return "There is no OVER: a match is in the order of time", hint


def _union(failure: Failure, number: int) -> Advice:
    return "There is no UNION", "open each query with its name: QUERY one: PATTERN ... QUERY two: PATTERN ..."


def _ilike(failure: Failure, number: int) -> Advice:
    wanted = failure.lexemes[min(number + 1, len(failure.lexemes) - 1)].text.lower() or "'a%'"
    return "There is no ILIKE", f"write lower(a.x) LIKE {wanted}"


# ------------------------------------------------------------------------------------------------ patterns


def _not_exists(failure: Failure, number: int) -> Advice | None:
    if failure.word(number + 2) != "(":
        return None
    inside = _rest(failure, number + 3)
    if failure.clause == "PATTERN" and inside:
        return "NOT EXISTS (...) is written NOT", f"write NOT {inside}"
    plain = re.fullmatch(r"[\w ]+", inside) and not inside.upper().startswith("SELECT")
    absent = inside if plain else "C c"
    return "What must not happen stands in PATTERN, not in WHERE", f"write PATTERN SEQ(A a, NOT {absent}, B b)"


def _exists(failure: Failure, number: int) -> Advice | None:
    if failure.word(number + 1) != "(" or failure.word(number - 1) == "NOT":
        return None
    inside = _rest(failure, number + 2)
    plain = inside if re.fullmatch(r"[\w ]+", inside) and not inside.upper().startswith("SELECT") else "B b"
    if failure.clause == "PATTERN":
        hidden = plain.split()[-1]
        return "EXISTS names the variable that it hides", f"write {plain}, or to hide it EXISTS {hidden} ({plain})"
    return "What must happen stands in PATTERN, not in WHERE", f"write PATTERN SEQ(A a, {plain})"


def _every(failure: Failure, number: int) -> Advice | None:
    if failure.clause == "WITHIN" or failure.lexemes[min(number + 1, len(failure.lexemes) - 1)].kind == "number":
        length = _rest(failure, number + 1) or "1 min"
        within = "" if failure.clause == "WITHIN" else "WITHIN 10 min "
        return "There is no EVERY", f"write {within}SLIDE {length}"
    if failure.word(number - 1) not in ("", "PATTERN", "(", "[", ",", ";", ">"):
        return None
    written = components(failure.lexemes[number : _clause_end(failure, number)])
    pattern = f"write PATTERN {written}" if written else "leave it out"
    return "There is no EVERY: all matches are found", f"{pattern}; SEMANTICS says which events may be stepped over"


def _as_in_pattern(failure: Failure, number: int) -> Advice | None:
    if failure.clause != "PATTERN" or failure.number != number:
        return None
    type_, variable = failure.before().text, failure.lexemes[min(number + 1, len(failure.lexemes) - 1)].text
    if not variable or failure.before().kind not in ("word", "quoted"):
        return None
    return "A variable follows its type without AS", f"write {type_} {variable}"


def _followed_by(failure: Failure, number: int) -> Advice:
    return "Patterns one after another stand in SEQ", "write PATTERN SEQ(A a, B b)"


def _skip(failure: Failure, number: int) -> Advice:
    words = [word.lower() for word in _rest(failure, number).split()]
    chosen = "skip-till-next-match" if "next" in words else "skip-till-any-match"
    return "How matches skip events is said by SEMANTICS", f"write SEMANTICS {chosen}"


def _skip_in_words(failure: Failure, number: int) -> Advice | None:
    if failure.word(number - 1) != "SEMANTICS":
        return None
    return _skip(failure, number)


def _strategy(failure: Failure, number: int) -> Advice:
    return "There is no STRATEGY", f"write SEMANTICS {_rest(failure, number + 1) or 'skip-till-next-match'}"


# ------------------------------------------------------------------------------------------ windows, groups, results


def _and_within(failure: Failure, number: int) -> Advice | None:
    if failure.word(number + 2) in (".", "["):
        return None
    length = _rest(failure, number + 2) or "10 min"
    joining = failure.word(number)
    return "WITHIN is a clause, not a condition", f"leave out {joining}: write WITHIN {length}"


def _within_and(failure: Failure, number: int) -> Advice | None:
    if failure.clause != "WITHIN" or failure.number != number:
        return None
    condition = _rest(failure, number + 1) or "a.x > 1"
    before = "... AND " if _has(failure, "WHERE") else ""
    return "Conditions stand in WHERE, not in WITHIN", f"write WHERE {before}{condition}"


def _window(failure: Failure, number: int) -> Advice | None:
    """KSQL: `WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 5 MINUTES)`."""
    rest = _rest(failure, number + 1)
    length = r"((?:INTERVAL\s+)?'?\d+'?\s+\w+)"
    size, step = (re.search(rf"{word}\s+{length}", rest, re.IGNORECASE) for word in ("SIZE", r"ADVANCE\s+BY"))
    within = size[1] if size else (rest if re.match(r"\d", rest) else "10 min")
    return "There is no WINDOW", f"write WITHIN {within}" + (f" SLIDE {step[1]}" if step else "")


def _slide(failure: Failure, number: int) -> Advice | None:
    if failure.clause != "WITHIN":
        return None
    length = re.search(r"\d.*", _rest(failure, number + 1))
    return f"There is no {failure.lexemes[number].text}", f"write SLIDE {length[0] if length else '1 min'}"


def _tumbling(failure: Failure, number: int) -> Advice:
    length = re.search(r"(?:INTERVAL\s+)?'?\d+'?\s*\w*", _rest(failure, number + 1), re.IGNORECASE)
    shown = length[0].strip() if length else "10 min"
    return "Windows that do not overlap are those of WITHIN alone", f"write RETURN COUNT(*) ... WITHIN {shown}"


def _emit(failure: Failure, number: int) -> Advice:
    return "Rows are given out once they are certain", "leave out EMIT"


def _star(failure: Failure, number: int) -> Advice | None:
    if failure.found.text != "*" or failure.clause != "RETURN":
        return None
    whole = "RETURN TRENDS, which gives every match with all columns of its events"
    if failure.before().text == ".":
        variable = failure.before(2).text
        return f"'{variable}.*' is not a value", f"name the columns: {variable}.time, {variable}.x; or {whole}"
    return ("There is no RETURN *", f"write {whole}") if failure.before().text.upper() == "RETURN" else None


def _limit(failure: Failure, number: int) -> Advice | None:
    if failure.open or failure.clause == "RANK":
        return None
    count = failure.lexemes[min(number + 1, len(failure.lexemes) - 1)].text
    most = int(count) if count.isdecimal() else 10
    hint = f"the best {most}: RANK BY a.x DESC LIMIT {most}; any {most} rows: {option('limit', most)}"
    return "LIMIT without RANK BY before it", hint


def _overall(failure: Failure, number: int) -> Advice | None:
    if failure.clause != "RANK":
        return None
    return "OVERALL stands behind LIMIT and its number", "write LIMIT 10 OVERALL"


def _slide_of_operand(failure: Failure, number: int) -> Advice | None:
    if not failure.open or failure.clause != "WITHIN" or failure.number != number:
        return None
    return "The WITHIN of an operand has no SLIDE", "SLIDE belongs to the WITHIN clause of the query"


_PHRASES: dict[str, Callable[[Failure, int], Advice | None]] = {
    "PARTITION BY": _partition_by,
    "ORDER BY": _order_by,
    "DEFINE": _define,
    "MEASURES": _measures,
    "ONE ROW PER MATCH": _one_row,
    "ALL ROWS PER MATCH": _all_rows,
    "AFTER MATCH": _after_match,
    "SELECT": _select,
    "FROM": _from,
    "DISTINCT": _distinct,
    "CASE WHEN": _case,
    "TIMESTAMP": _moment,
    "DATE": _moment,
    "UNION": _union,
    "OVER": _over,
    "ILIKE": _ilike,
    "NOT EXISTS": _not_exists,
    "EXISTS": _exists,
    "EVERY": _every,
    "AS": _as_in_pattern,
    "FOLLOWED BY": _followed_by,
    "SKIP TILL": _skip,
    "SKIP": _skip_in_words,
    "STRATEGY": _strategy,
    "AND WITHIN": _and_within,
    "WHERE WITHIN": _and_within,
    "AND": _within_and,
    "WINDOW": _window,
    "SLIDING": _slide,
    "HOP": _slide,
    "HOPPING": _slide,
    "ADVANCE": _slide,
    "TUMBLE": _tumbling,
    "TUMBLING": _tumbling,
    "EMIT": _emit,
    "RETURN": _star,
    "*": _star,
    "LIMIT": _limit,
    "OVERALL": _overall,
    "SLIDE": _slide_of_operand,
}
