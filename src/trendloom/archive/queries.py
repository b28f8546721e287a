"""Descriptions of the queries and monitors of an archive, beside their rows: one small file of JSON each.

Values of a monitor are whatever its maker wrote; the archive only keeps them whole. A query keeps its name for good:
rows of another query under the same name would be taken for its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trendloom.archive.commits import MONITORS, QUERIES, quoted, write_whole
from trendloom.errors import OptionError

AT = "at"
"""The column of results that says when."""


@dataclass(frozen=True)
class ArchivedQuery:
    """A query whose rows are archived.

    `keys`: the partition attributes among the columns of its rows; `values`: the numeric ones; `kinds` of all columns
    by name; `types`: those of its pattern. `measured`: what RETURN reads of which type; None for a column: it counts.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    measured: tuple[tuple[str, str | None], ...] = ()


def save_query(root: Path, query: ArchivedQuery) -> None:
    """Keep a query, or refuse one whose name another has."""
    if refuse_other_query(root, query) != query:
        content = json.dumps(asdict(query), indent=2) + "\n"
        write_whole(_path(root, QUERIES, query.name), content.encode())


def refuse_other_query(root: Path, query: ArchivedQuery) -> ArchivedQuery | None:
    """The description of a query, unless its name is that of another one; None: nothing that can be read."""
    try:
        there = _query(json.loads(_path(root, QUERIES, query.name).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if there.text != query.text:
        raise OptionError(
            f"the archive has another query '{query.name}' already",
            hint="give the new one another name (QUERY name: ...), or archive it elsewhere",
        )
    return there


def read_queries(root: Path) -> tuple[dict[str, ArchivedQuery], tuple[str, ...]]:
    """The queries by name, and files that cannot be read."""
    told, damaged = _all(root, QUERIES)
    found, wrong = {}, list(damaged)
    for path, one in told.items():
        try:
            query = _query(one)
        except (TypeError, KeyError, ValueError):
            wrong.append(path)
        else:
            found[query.name] = query
    return dict(sorted(found.items())), tuple(wrong)


def _query(told: dict[str, Any]) -> ArchivedQuery:
    told = {**told, **{name: tuple(told[name]) for name in ("keys", "values", "types")}}
    return ArchivedQuery(**{**told, "measured": tuple((kind, column) for kind, column in told["measured"])})


def save_monitor(root: Path, name: str, told: Mapping[str, Any]) -> None:
    """Keep a monitor, in place of the one of that name."""
    content = {"name": name, **told}
    write_whole(_path(root, MONITORS, name), (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def read_monitors(root: Path) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """The monitors by name, and files that cannot be read."""
    told, damaged = _all(root, MONITORS)
    named = {path: one for path, one in told.items() if isinstance(one, dict) and "name" in one}
    wrong = (*damaged, *(path for path in told if path not in named))
    return dict(sorted((one["name"], one) for one in named.values())), wrong


def _all(root: Path, folder: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    found: dict[str, Any] = {}
    damaged = []
    for path in sorted((root / folder).glob("*.json")):
        name = str(path.relative_to(root))
        try:
            found[name] = json.loads(path.read_bytes())
        except ValueError:
            damaged.append(name)
    return found, tuple(damaged)


def _path(root: Path, folder: str, name: str) -> Path:
    return root / folder / f"{quoted(name)}.json"
