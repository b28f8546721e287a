"""Small pieces of other languages, written in ours, for hints: `LAST(b.x)` is `b[last].x`, `a=A` is `A a`.

Works on text, without understanding it: what it does not know it leaves as it is, since a person reads the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trendloom.frontend.tql.source import Lexeme

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
