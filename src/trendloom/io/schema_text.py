"""What `--schema` says: "time timestamp, id string, amount decimal(10,2)" becomes names and Arrow types.

The words are those of Spark's SQL, so that one text serves `trendloom run` and `trendloom stream`; no Spark is needed
to read it. A colon may stand between name and type, `NOT NULL` and a COMMENT are read over, names in backquotes may
hold anything.
"""

from __future__ import annotations

import re

import pyarrow as pa

from trendloom.errors import OptionError, did_you_mean

TYPES = {
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
DECIMALS = ("decimal", "dec", "numeric")
EXAMPLE = '"time timestamp, type string, amount decimal(10,2)"'

_NAME = r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^\s`,:()]+))"
_TYPE = r"(?P<type>[A-Za-z_]\w*)\s*(?:\(\s*(?P<first>\d+)\s*(?:,\s*(?P<second>\d+)\s*)?\))?"
_MORE = r"(?:\s+NOT\s+NULL)?(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?"
_COLUMN = re.compile(rf"\s*{_NAME}\s*(?::\s*|\s+){_TYPE}{_MORE}\s*(?:,|$)", re.IGNORECASE)


def parse_schema(text: str) -> dict[str, pa.DataType]:
    """The columns that a text names, and what each is."""
    found: dict[str, pa.DataType] = {}
    at = 0
    while at < len(text):
        match = _COLUMN.match(text, at)
        if match is None:
            raise OptionError(f"the schema cannot be read from {text[at:].strip()[:40]!r} on", hint=f"write {EXAMPLE}")
        name = match["plain"] if match["quoted"] is None else match["quoted"].replace("``", "`")
        if name in found:
            raise OptionError(f"the schema names column '{name}' twice", hint="leave one of them out")
        found[name] = _type(match)
        at = match.end()
    if not found:
        raise OptionError("the schema names no column", hint=f"write {EXAMPLE}")
    return found


def _type(match: re.Match[str]) -> pa.DataType:
    word, first, second = match["type"].lower(), match["first"], match["second"]
    if word in DECIMALS:
        digits, scale = int(first or 10), int(second or 0)
        if not 1 <= digits <= 38 or scale > digits:
            raise OptionError(
                f"there is no type {word}({digits},{scale})",
                hint="a decimal has at most 38 digits, and not more of them behind the point: decimal(38,2)",
            )
        return pa.decimal128(digits, scale)
    if word not in TYPES:
        raise OptionError(f"there is no type '{match['type']}'", hint=did_you_mean(word, [*TYPES, *DECIMALS]))
    if first is not None and word not in ("varchar", "char"):
        raise OptionError(f"the type {word} takes no numbers in brackets", hint=f"write {word}")
    return TYPES[word]
