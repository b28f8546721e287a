"""Queries that are nearly right: words and characters of good ones deleted, inserted, swapped and doubled.

The good ones are those of the examples, of the conformance cases and of the language page. A mutant is read, bound,
optimized and planned; it may be refused at any of these stages, but only by our errors, with a message and a place.

    python -m tests.property.mutants 100000 7      so many of them, from this seed
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.conformance.cases import read_cases
from tests.docs.blocks import blocks

from trendloom.engines.introspection import _section
from trendloom.errors import ParseError, TrendloomError
from trendloom.frontend.tql.keywords import is_reserved
from trendloom.frontend.tql.parser import parse
from trendloom.frontend.tql.printer import write
from trendloom.frontend.tree import attributes_of
from trendloom.logical.bind import bind
from trendloom.logical.statistics import nothing_known
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis

ROOT = Path(__file__).resolve().parents[2]
WORDS = re.compile(r"\s+|\w+|'(?:[^']|'')*'|`[^`]*`|[^\w\s]")
_SCRAPS = """PATTERN RETURN WHERE GROUP BY HAVING WITHIN SLIDE SEMANTICS RANK LIMIT CONFIDENCE QUERY SEQ NOT OR AND
    EXISTS NEXT IN BETWEEN IS NULL LIKE TRUE FALSE AS ASC DESC TRENDS COMPLETE COLLAPSED INTERVAL SELECT FROM PARTITION
    ORDER DEFINE MEASURES EVERY MATCH_RECOGNIZE PREV LAST FIRST median ( ) [ ] { } , ; : . .. + * ? ! ~ | || - -> / % =
    == != <> < <= > >= && ' " ` -- /* # @ 0 1 2 3 0.5 1e400 99999999999999999999 -1 min h 'x' '10' '' `` a b A B a.x b[]
    b[i] b[i-1] b[first] b[last] COUNT(*) count(b[]) sum(b.x) max(b[..i-1].x) time type abs sqrt coalesce round MERGE n
    contiguous skip-till-next-match skip-till-any-match OVERALL"""
SCRAPS = _SCRAPS.split()
STRANGE = (
    "()[]{},;:.+*?!~|-/%=<>'\"`#&@\\0123456789eE_ \n\t\r\x00\x1c\x85\u2028\u200b\ufeff\xe9\xdf\u4ef7\u0130\U0001f600"
)


@cache
def good_queries() -> tuple[str, ...]:
    """Every query of the examples, the cases and the language page."""
    found = [path.read_text() for path in sorted((ROOT / "examples").glob("*.tql"))]
    found += [case.query for name in ("cases.json", "decisions.json", "imprecise.json") for case in read_cases(name)]
    found += [b.text for b in blocks((ROOT / "docs" / "language.md").read_text()) if b.kind == "tql"]
    singles = [part for text in found for part in re.split(r"(?m)^(?=QUERY )", text) if part.strip()]
    return tuple(dict.fromkeys([*found, *singles]))


def mutant(text: str, dice: random.Random) -> str:
    """The text with some changes: half of the mutants say something else in the same words, half are broken."""
    if dice.random() < 0.5:
        for _ in range(dice.choice((1, 1, 2, 3))):
            text = _alike(text, dice)
        return text
    for _ in range(dice.choice((1, 1, 2, 3))):
        text = dice.choice((_words, _words, _characters, _splice))(text, dice)
    return text


def _alike(text: str, dice: random.Random) -> str:
    """A name, number or operator for another of its kind: most of these are queries, of another meaning or of none."""
    words = WORDS.findall(text)
    places = [at for at, word in enumerate(words) if _kind(word)]
    if places:
        at = dice.choice(places)
        words[at] = dice.choice(_of_kind(_kind(words[at])))
    return "".join(words)


def _kind(word: str) -> str:
    if word in ("+", "-", "*", "/", "%", "?"):
        return "arithmetic"
    if word in ("=", "<", ">"):
        return "comparison"
    if word.isdigit():
        return "number"
    return "name" if word[:1].isalpha() and not is_reserved(word) else ""


@cache
def _of_kind(kind: str) -> tuple[str, ...]:
    words = [word for text in good_queries() for word in WORDS.findall(text)]
    return tuple(sorted({word for word in (*words, *SCRAPS) if _kind(word) == kind}))


def _words(text: str, dice: random.Random) -> str:
    words = [word for word in WORDS.findall(text) if word.strip()]
    if not words:
        return dice.choice(SCRAPS)
    at, to = dice.randrange(len(words)), dice.randrange(len(words))
    match dice.randrange(5):
        case 0:
            del words[at]
        case 1:
            words.insert(at, dice.choice(SCRAPS))
        case 2:
            words[at], words[to] = words[to], words[at]
        case 3:
            words.insert(to, words[at])
        case _:
            words[at] = dice.choice(SCRAPS)
    return " ".join(words)


def _characters(text: str, dice: random.Random) -> str:
    at, to = dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)
    match dice.randrange(4):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + dice.choice(STRANGE) + text[at:]
        case 2:
            first, last = sorted((at, to))
            return text[:first] + text[last:] if last - first < 20 else text[:first]
        case _:
            return text[:at] + text[at : at + 1] + text[at:]


def _splice(text: str, dice: random.Random) -> str:
    """The beginning of one query and the end of another."""
    other = dice.choice(good_queries())
    return text[: dice.randrange(len(text) + 1)] + other[dice.randrange(len(other) + 1) :]


def mutants(count: int, seed: int) -> Iterator[tuple[str, Schema]]:
    """So many mutants, each with a schema in which the attributes of the good query have some kind."""
    dice = random.Random(seed)
    for _ in range(count):
        good = dice.choice(good_queries())
        yield mutant(good, dice), schema_for(good, dice)


def schema_for(text: str, dice: random.Random) -> Schema:
    axis = dice.choice((TimeAxis.integer("s"), TimeAxis.integer("ms"), TimeAxis.timestamps()))
    moment = Kind.TIME if axis.timestamp else Kind.INT
    kinds = {"time": moment, "type": Kind.STRING, "id": Kind.STRING, "x": Kind.INT, "val": Kind.FLOAT}
    usual = (Kind.INT, Kind.FLOAT, Kind.STRING, Kind.INT, Kind.FLOAT, Kind.NULL, Kind.BOOL, Kind.TIME, Kind.OTHER)
    for name in _named(text):
        kinds.setdefault(name, dice.choice(usual))
    return Schema(tuple(Column(name, kind) for name, kind in kinds.items()), axis=axis)


@cache
def _named(text: str) -> tuple[str, ...]:
    try:
        queries = parse(text)
    except TrendloomError:  # the language page shows errors as well
        return ()
    return tuple(dict.fromkeys(name for query in queries for name in attributes_of(query)))


def stage_of(text: str, schema: Schema) -> str:
    """How far a text comes; raises what is not one of our errors, and where one of ours says too little."""
    try:
        for query in parse(text):
            assert parse(write(query)) == (query,), "printed and read again, it is another query"
            plan = bind(query, schema)
            for warning in plan.warnings:
                assert str(warning).strip()
            assert _section(plan, "local", nothing_known).strip()
    except TrendloomError as error:
        _check(error, text)
        return type(error).__name__
    return "planned"


def _check(error: TrendloomError, text: str) -> None:
    assert error.message.strip()
    assert error.hint is None or error.hint.strip()
    assert error.message in str(error)
    assert "\x0e" not in str(error)
    if isinstance(error, ParseError):
        assert error.span is not None
        assert error.text == text
        assert 1 <= error.span.line <= max(1, len(text.splitlines()))
        assert error.span.column >= 1


def survey(count: int, seed: int, tell: Callable[[str, BaseException], None]) -> Counter[str]:
    """How many mutants reach which stage; `tell` is called with each that breaks something."""
    stages: Counter[str] = Counter()
    for text, schema in mutants(count, seed):
        try:
            stages[stage_of(text, schema)] += 1
        except Exception as error:
            stages["broken"] += 1
            tell(text, error)
    return stages


if __name__ == "__main__":
    print(
        survey(int(sys.argv[1]), int(sys.argv[2]), lambda text, error: print(repr(text), repr(error)[:300], sep="\n  "))
    )
