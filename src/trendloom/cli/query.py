"""The text of a query: of a file, or of standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from trendloom.errors import OptionError, did_you_mean

STANDARD_INPUT = "-"


def read_query(name: str) -> str:
    """The text, or an error that helps to find it."""
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(name).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise OptionError(f"there is no query file {name}", hint=_nearby(Path(name))) from None
    except IsADirectoryError:
        raise OptionError(f"{name} is a folder, not a query file", hint=_nearby(Path(name) / "any.tql")) from None
    except UnicodeDecodeError:
        raise OptionError(f"{name} is not text in UTF-8", hint="a query file is plain text, by habit *.tql") from None
    except OSError as problem:
        raise OptionError(f"{name} cannot be read: {problem.strerror or problem}") from None


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    names = [found.name for found in path.parent.glob("*.tql")]
    return did_you_mean(path.name, names) or "write the query into a file, or give - and write it to standard input"
