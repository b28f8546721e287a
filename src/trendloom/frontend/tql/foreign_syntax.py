"""Phrases and functions of SQL, MATCH_RECOGNIZE, Esper, Flink and KSQL, and what to write here instead.

A phrase is looked for only at the place where the parser has given up, so none of its words is reserved: a type may be
named Every. The hint is the text to write, with the names that stand in the query. Cost: a few words are compared, once
per failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trendloom.errors import ParseError, did_you_mean, option
from trendloom.frontend import tree
from trendloom.frontend.source import Lexeme
from trendloom.frontend.tql.keywords import write_name
from trendloom.frontend.tql.parse_failure import Failure, is_clause
from trendloom.frontend.tql.printer import write_expression

Advice = tuple[str, str]
"""What is wrong, and what to write."""

_ENDS = {"PARTITION", "ORDER", "DEFINE", "MEASURES", "ONE", "ALL", "AFTER", "FROM", "SELECT", "WINDOW", "EMIT"}
"""Words that end a clause beside our own."""


@dataclass(frozen=True)
class Phrase:
    """A phrase of another language in a text: `number` is that of its first lexeme."""

    failure: Failure
    number: int

    def word(self, distance: int) -> str:
        """A lexeme before or after the first one, in upper case."""
        return self.failure.word(self.number + distance)

    @property
    def next(self) -> Lexeme:
        return self.failure.lexemes[min(self.number + 1, len(self.failure.lexemes) - 1)]

    @property
    def is_failure(self) -> bool:
        """Whether the phrase begins where the parser gave up."""
        return self.failure.number == self.number

    def end(self, distance: int) -> int:
        """Where the clause ends in which a lexeme lies: at the next one, or at a bracket that it did not open."""
        depth, failure = 0, self.failure
        for at in range(self.number + distance, len(failure.lexemes)):
            text = failure.word(at)
            depth += (text in "([{") - (text in ")]}") if text else 0
            ended = depth == 0 and (is_clause(failure.lexemes[at]) or text in _ENDS)
            if not text or depth < 0 or text == ";" or ended:
                return at
        return len(failure.lexemes) - 1

    def rest(self, distance: int = 1) -> str:
        """The text of a clause from a lexeme on."""
        return self.failure.text(self.number + distance, self.end(distance))

    def names(self, distance: int) -> str:
        """The attributes of a list, without the variables in front of them."""
        failure, found = self.failure, []
        for at in range(self.number + distance, self.end(distance)):
            kind, text = failure.lexemes[at].kind, failure.lexemes[at].text
            if kind in ("word", "quoted") and failure.word(at + 1) != "." and text.upper() not in ("ASC", "DESC"):
                found.append(text)
        return ", ".join(found) or "key"

    def text_has(self, word: str) -> bool:
        return any(lexeme.kind == "word" and lexeme.text.upper() == word for lexeme in self.failure.lexemes)


def foreign_phrases(failure: Failure) -> Iterator[ParseError]:
    """The errors for phrases of other languages at or right before the place of the failure."""
    for lexeme in failure.lexemes:
        if lexeme.text.upper() == "MATCH_RECOGNIZE":
            yield failure.error(
                "MATCH_RECOGNIZE is a query by itself here",
                "PATTERN SEQ(A a, B+ b[]) WHERE [key] AND ... RETURN ... WITHIN 1 h: PARTITION BY is [key], DEFINE is "
                "WHERE, MEASURES is RETURN, and A and B are types of events",
                lexeme,
            )
    for number in range(max(0, failure.number - 3), failure.number + 1):
        for phrase, advise in _PHRASES.items():
            words = phrase.split()
            if failure.number <= number + len(words) + 1 and all(
                failure.word(number + step) == word for step, word in enumerate(words)
            ):
                advice = advise(Phrase(failure, number)) if callable(advise) else advise
                if advice is not None:
                    yield failure.error(*advice, at=failure.lexemes[number])


# --------------------------------------------------------------------------------------- MATCH_RECOGNIZE and SQL


def _order_by(phrase: Phrase) -> Advice:
    rest, end = phrase.rest(2), phrase.end(2)
    message = "There is no ORDER BY: events are in the order of their time"
    if re.fullmatch(r"\w+( ASC)?", rest, re.IGNORECASE):
        return message, f"leave it out; {option('time', rest.split()[0])} names the column of the time"
    best = rest.partition(",")[0] or "a.x DESC"
    most = phrase.failure.word(end + 1) if phrase.failure.word(end) == "LIMIT" else "10"
    return message, f"leave it out and sort the rows of the result; the best alone: RANK BY {best} LIMIT {most}"


def _define(phrase: Phrase) -> Advice:
    written = definitions(phrase.rest()) or ["a.x > 1", "b.x > a.x"]
    return "There is no DEFINE: conditions stand in WHERE", f"write WHERE {' AND '.join(written)}"


def _select(phrase: Phrase) -> Advice:
    if phrase.failure.open:
        return "There are no queries inside queries", "list the values: IN ('a', 'b')"
    items = phrase.rest()
    returned = "TRENDS" if items in ("*", "") else as_written_here(items)
    without = "; there is no FROM: events are given beside the query" if phrase.text_has("FROM") else ""
    return "There is no SELECT", f"write RETURN {returned}{without}"


def _distinct(phrase: Phrase) -> Advice:
    hint = (
        "take the rows (RETURN TRENDS) and count there" if phrase.failure.open else "remove equal rows from the result"
    )
    return "There is no DISTINCT", f"leave it out, and {hint}"


def _moment(phrase: Phrase) -> Advice | None:
    return ("A time is written as plain text", f"write {phrase.next.text}") if phrase.next.kind == "string" else None


# ------------------------------------------------------------------------------------------------ patterns


def _plain(inside: str) -> bool:
    return re.fullmatch(r"[\w ]+", inside) is not None and not inside.upper().startswith("SELECT")


def _not_exists(phrase: Phrase) -> Advice | None:
    if phrase.word(2) != "(":
        return None
    inside = phrase.rest(3)
    if phrase.failure.clause == "PATTERN" and inside:
        return "NOT EXISTS (...) is written NOT", f"write NOT {inside}"
    absent = inside if _plain(inside) else "C c"
    return "What must not happen stands in PATTERN, not in WHERE", f"write PATTERN SEQ(A a, NOT {absent}, B b)"


def _exists(phrase: Phrase) -> Advice | None:
    if phrase.word(1) != "(" or phrase.word(-1) == "NOT":
        return None
    inside = phrase.rest(2)
    plain = inside if _plain(inside) else "B b"
    if phrase.failure.clause == "PATTERN":
        hidden = plain.split()[-1]
        return "EXISTS names the variable that it hides", f"write {plain}, or to hide it EXISTS {hidden} ({plain})"
    return "What must happen stands in PATTERN, not in WHERE", f"write PATTERN SEQ(A a, {plain})"


def _every(phrase: Phrase) -> Advice | None:
    windows = phrase.failure.clause == "WITHIN"
    if windows or phrase.next.kind == "number":
        return "There is no EVERY", f"write {'' if windows else 'WITHIN 10 min '}SLIDE {phrase.rest() or '1 min'}"
    if phrase.word(-1) not in ("", "PATTERN", "(", "[", ",", ";", ">"):
        return None
    written = components(phrase.failure.lexemes[phrase.number : phrase.end(0)])
    pattern = f"write PATTERN {written}" if written else "leave it out"
    return "There is no EVERY: all matches are found", f"{pattern}; SEMANTICS says which events may be stepped over"


def _as_in_pattern(phrase: Phrase) -> Advice | None:
    before, variable = phrase.failure.before(), phrase.next.text
    named = variable and before.kind in ("word", "quoted")
    if phrase.failure.clause != "PATTERN" or not phrase.is_failure or not named:
        return None
    return "A variable follows its type without AS", f"write {before.text} {variable}"


def _skip(phrase: Phrase) -> Advice:
    chosen = "next" if "NEXT" in phrase.rest(0).upper().split() else "any"
    return "How matches skip events is said by SEMANTICS", f"write SEMANTICS skip-till-{chosen}-match"


# ------------------------------------------------------------------------------------------ windows, groups, results


def _and_within(phrase: Phrase) -> Advice | None:
    if phrase.word(2) in (".", "["):
        return None
    hint = f"leave out {phrase.word(0)}: write WITHIN {phrase.rest(2) or '10 min'}"
    return "WITHIN is a clause, not a condition", hint


def _within_and(phrase: Phrase) -> Advice | None:
    if phrase.failure.clause != "WITHIN" or not phrase.is_failure:
        return None
    before = "... AND " if phrase.text_has("WHERE") else ""
    return "Conditions stand in WHERE, not in WITHIN", f"write WHERE {before}{phrase.rest() or 'a.x > 1'}"


def _window(phrase: Phrase) -> Advice:
    """KSQL: `WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 5 MINUTES)`."""
    rest = phrase.rest()
    length = r"((?:INTERVAL\s+)?'?\d+'?\s+\w+)"
    size, step = (re.search(rf"{word}\s+{length}", rest, re.IGNORECASE) for word in ("SIZE", r"ADVANCE\s+BY"))
    within = size[1] if size else (rest if re.match(r"\d", rest) else "10 min")
    return "There is no WINDOW", f"write WITHIN {within}" + (f" SLIDE {step[1]}" if step else "")


def _slide(phrase: Phrase) -> Advice | None:
    if phrase.failure.clause != "WITHIN":
        return None
    length = re.search(r"\d.*", phrase.rest())
    word = phrase.failure.lexemes[phrase.number].text
    return f"There is no {word}", f"write SLIDE {length[0] if length else '1 min'}"


def _tumbling(phrase: Phrase) -> Advice:
    length = re.search(r"(?:INTERVAL\s+)?'?\d+'?\s*\w*", phrase.rest(), re.IGNORECASE)
    shown = length[0].strip() if length else "10 min"
    return "Windows that do not overlap are those of WITHIN alone", f"write RETURN COUNT(*) ... WITHIN {shown}"


def _star(phrase: Phrase) -> Advice | None:
    failure = phrase.failure
    if failure.found.text != "*" or failure.clause != "RETURN":
        return None
    whole = "RETURN TRENDS, which gives every match with all columns of its events"
    if failure.before().text == ".":
        variable = failure.before(2).text
        return f"'{variable}.*' is not a value", f"name the columns: {variable}.time, {variable}.x; or {whole}"
    return ("There is no RETURN *", f"write {whole}") if failure.before().text.upper() == "RETURN" else None


def _limit(phrase: Phrase) -> Advice | None:
    if phrase.failure.open or phrase.failure.clause == "RANK":
        return None
    most = int(phrase.next.text) if phrase.next.text.isdecimal() else 10
    hint = f"the best {most}: RANK BY a.x DESC LIMIT {most}; any {most} rows: {option('limit', most)}"
    return "LIMIT without RANK BY before it", hint


def _slide_of_operand(phrase: Phrase) -> Advice | None:
    if not phrase.failure.open or phrase.failure.clause != "WITHIN" or not phrase.is_failure:
        return None
    return "The WITHIN of an operand has no SLIDE", "SLIDE belongs to the WITHIN clause of the query"


_PHRASES: dict[str, Advice | Callable[[Phrase], Advice | None]] = {
    "PARTITION BY": lambda phrase: (
        "There is no PARTITION BY",
        f"write WHERE [{phrase.names(2)}]{' AND ...' if phrase.text_has('WHERE') else ''}",
    ),
    "ORDER BY": _order_by,
    "DEFINE": _define,
    "MEASURES": lambda phrase: (
        "There is no MEASURES",
        f"write RETURN {as_written_here(phrase.rest()) or 'a.x AS name'}",
    ),
    "ONE ROW PER MATCH": ("Every match is one row already", "leave out ONE ROW PER MATCH"),
    "ALL ROWS PER MATCH": (
        "Every match is one row",
        "leave it out: RETURN TRENDS lists all events of a match in the column events",
    ),
    "AFTER MATCH": (
        "There is no AFTER MATCH: matches may overlap",
        "leave it out; SEMANTICS skip-till-next-match and SEMANTICS contiguous find fewer matches",
    ),
    "SELECT": _select,
    "FROM": lambda _: (
        "There is no FROM",
        f"leave it out: events are given beside the query, {option('events', 'FILE')}",
    ),
    "DISTINCT": _distinct,
    "CASE WHEN": ("There is no CASE", "write the cases as conditions: a.x > 1 AND ... OR a.x <= 1 AND ..."),
    "TIMESTAMP": _moment,
    "DATE": _moment,
    "UNION": ("There is no UNION", "open each query with its name: QUERY one: PATTERN ... QUERY two: PATTERN ..."),
    "OVER": (
        "There is no OVER: a match is in the order of time",
        "leave it out: b[i] and b[i-1] are an event and the one before it, NEXT(b) is the one after it",
    ),
    "ILIKE": lambda phrase: ("There is no ILIKE", f"write lower(a.x) LIKE {phrase.next.text.lower() or repr('a%')}"),
    "NOT EXISTS": _not_exists,
    "EXISTS": _exists,
    "EVERY": _every,
    "AS": _as_in_pattern,
    "FOLLOWED BY": ("Patterns one after another stand in SEQ", "write PATTERN SEQ(A a, B b)"),
    "SKIP TILL": _skip,
    "SKIP": lambda phrase: _skip(phrase) if phrase.word(-1) == "SEMANTICS" else None,
    "STRATEGY": lambda phrase: (
        "There is no STRATEGY",
        f"write SEMANTICS {phrase.rest() or 'skip-till-next-match'}",
    ),
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
    "EMIT": ("Rows are given out once they are certain", "leave out EMIT"),
    "RETURN": _star,
    "*": _star,
    "LIMIT": _limit,
    "OVERALL": lambda phrase: (
        ("OVERALL stands behind LIMIT and its number", "write LIMIT 10 OVERALL")
        if phrase.failure.clause == "RANK"
        else None
    ),
    "SLIDE": _slide_of_operand,
}


# --------------------------------------------------------------------------------------------- translations
#
# Small pieces of other languages, written in ours, for hints: `LAST(b.x)` is `b[last].x`, `a=A` is `A a`. They work on
# text, without parsing it; what they do not recognise is left as it is, since a person reads the result.


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
    """Esper's `every a=A -> b=B` as SEQ(A a, B b); None where it has other parts."""
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


# ------------------------------------------------------------------------------------------------ functions
#
# PREV, LAST, MEDIAN or NOW are not functions here, but most can be written otherwise.


_FUNCTIONS = {
    "prev previous lag": "write {variable}[i-1].{attribute}, and {variable}[i].{attribute} for the event after it",
    "lead following": "write NEXT({variable}).{attribute}",
    "first first_value": "write {variable}[first].{attribute}",
    "last last_value": "write {variable}[last].{attribute}",
    "mean average": "write avg({variable}[].{attribute}) of one match, or AVG({variable}.{attribute}) over all matches",
    "median mode percentile percentile_cont percentile_disc approx_percentile quantile std stdev stddev stddev_pop "
    "stddev_samp var variance var_pop var_samp corr listagg array_agg collect_list string_agg count_distinct":
        "there is count, min, max, sum and avg, as in avg({variable}[].{attribute}); for others, RETURN TRENDS and "
        "compute them from the events",
    "now current_timestamp current_date today getdate sysdate localtimestamp":
        "write a time as text, '2024-01-31 12:00:00': a query gives the same whenever it is run",
    "datediff timestampdiff date_diff timestamp_diff age": "subtract: b.time - a.time < 5 min",
    "match_number classifier":
        "RETURN TRENDS: every row is a match, and its events carry their variable in var",
}  # fmt: skip
_OF_FUNCTION = {name: hint for names, hint in _FUNCTIONS.items() for name in names.split()}
_ATTRIBUTES = frozenset({"same", "equal", "equals", "partition", "partition_by", "key"})


def hint_for(call: tree.Call, functions: tuple[str, ...]) -> str | None:
    """The hint for an unknown function."""
    first = call.arguments[0] if call.arguments else None
    if call.name in _ATTRIBUTES and isinstance(first, tree.Name):
        return f"write [{write_name(first.name, reserved_allowed=True)}]"
    if call.name not in _OF_FUNCTION:
        return did_you_mean(call.name, functions)
    variable, attribute = "b", "x"
    if isinstance(first, tree.Reference):
        variable, attribute = write_name(first.variable), write_name(first.attribute or "x", reserved_allowed=True)
    elif isinstance(first, tree.Name):
        variable = write_expression(first)
    return _OF_FUNCTION[call.name].format(variable=variable, attribute=attribute)
