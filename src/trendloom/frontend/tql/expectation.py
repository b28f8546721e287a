"""What could have stood where a parse failed, in plain words instead of names of terminals."""

from __future__ import annotations


def _terminals(names: str) -> frozenset[str]:
    return frozenset(names.split())


_GROUPS = (
    # the words for a group, the terminals that show that it is meant, all terminals that the words stand for
    ("a pattern", _terminals("SEQ NAME"), _terminals("SEQ NAME QUOTED LPAR EXISTS NOT BANG TILDE OR AND")),
    (
        "a value",
        _terminals("STRING NUMBER NAME"),
        _terminals(
            "STRING NUMBER NAME QUOTED TRUE FALSE NEXT LPAR LSQB MINUS NOT STAR TRENDS COMPLETE COLLAPSED INTERVAL"
        ),
    ),
    ("a length such as 10 min", _terminals("MINUS NUMBER INTERVAL"), _terminals("MINUS NUMBER INTERVAL")),
    ("a whole number", _terminals("MINUS NUMBER"), _terminals("MINUS NUMBER")),
    ("i, i-1, first, last or ..i-1", _terminals("INDEX_MARK"), _terminals("INDEX_MARK NAME NUMBER")),
    ("a name", _terminals("NAME QUOTED"), _terminals("NAME QUOTED")),
    ("the name of a column", _terminals("ANY_NAME"), _terminals("ANY_NAME QUOTED")),
    (
        "one of skip-till-any-match, skip-till-next-match, contiguous",
        _terminals("SEMANTICS_NAME"),
        _terminals("SEMANTICS_NAME"),
    ),
    ("a unit of time", _terminals("NAME"), _terminals("NAME")),
    ("a repetition (+, *, ?, {n})", _terminals("QMARK LBRACE"), _terminals("PLUS STAR QMARK LBRACE VBAR OR LSQB")),
    (
        "an operator",
        _terminals("PLUS MINUS"),
        _terminals("PLUS MINUS STAR SLASH PERCENT COMPARE IN NOT BETWEEN LIKE IS AND OR DOT LPAR LSQB"),
    ),
    ("AND, OR", _terminals("AND OR"), _terminals("AND OR")),
    (
        "another clause",
        _terminals("PATTERN WHERE WITHIN"),
        _terminals("RETURN PATTERN SEMANTICS WHERE GROUP_BY HAVING WITHIN RANK_BY CONFIDENCE QUERY SEMICOLON $END"),
    ),
)

_SIGNS = {
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','",
    "SEMICOLON": "','", "COLON": "':'", "DOT": "'.'", "PLUS": "'+'", "MINUS": "'-'", "STAR": "'*'", "SLASH": "'/'",
    "PERCENT": "'%'", "QMARK": "'?'", "VBAR": "'|'", "BANG": "'!'", "TILDE": "'~'", "NUMBER": "a number",
    "STRING": "a string in single quotes", "COMPARE": "a comparison", "QUOTED": "a name", "$END": "the end",
    "GROUP_BY": "GROUP BY", "RANK_BY": "RANK BY",
}  # fmt: skip

_SPECIAL = {
    ("WHERE", "a value"): "a condition",
    ("HAVING", "a value"): "a condition",
    ("QUERY", "the name of a column"): "a name",
}
"""What groups are called in some clauses."""


def expectation(accepted: frozenset[str], *, clause: str) -> str:
    """The accepted terminals in words; in WHERE and HAVING a value is called a condition, and QUERY has a name."""
    rest = set(accepted)
    if "PATTERN" not in rest:
        rest.discard("WITHIN")  # of an operand: rarely what somebody meant inside brackets
    words = ["AND"] if "AND" in rest and not {"OR", "SEQ"} & rest else []
    for name, shown_by, covered in _GROUPS:
        if shown_by <= rest:
            words.append(_SPECIAL.get((clause, name), name))
            rest -= covered
    signs = sorted({_SIGNS.get(terminal, terminal) for terminal in rest})
    return _joined([*signs, *words]) if signs or words else "something else"


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
