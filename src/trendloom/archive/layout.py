"""Where things lie in an archive, and how names become names of files.

Types, queries and commits may be called anything, so their names are percent-quoted in paths, as Hive and Spark do it,
and cut with a hash where they are too long for a file system. Paths are for people and other readers: what a file
holds is said by the commit that lists it, under its real name.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from urllib.parse import quote

EVENTS, RESULTS, PARTITIONS = "events", "results", "partitions"
KINDS = (EVENTS, RESULTS, PARTITIONS)
"""What files of an archive hold."""

SETTINGS = "archive.json"
COMMITS, SCHEMAS, QUERIES, MONITORS = "commits", "schemas", "queries", "monitors"
COMMITTING = ".committing"
"""The file whose lock is held from reading the commits that another one depends on until that is written."""
LONGEST = 150
"""Characters of a quoted name: what is longer is cut. Most file systems allow 255 with all that stands around it."""


def quoted(name: str) -> str:
    """A name as a part of a path: never empty, hidden, or a step upwards."""
    text = quote(name, safe="")
    text = "%2E" + text[1:] if text.startswith(".") else text or "%"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}~{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]}"


def data_path(kind: str, commit: str, of: str, chunk: int | None, name: str) -> str:
    """Where a file of a commit lies, from the root of the archive; `of`: the type or the query."""
    folder = f"{kind}/{quoted(commit)}/{'type' if kind == EVENTS else 'query'}={quoted(of)}"
    return f"{folder}/{name}.parquet" if chunk is None else f"{folder}/chunk={chunk}/{name}.parquet"


def commit_path(root: Path, name: str) -> Path:
    return root / COMMITS / f"{quoted(name)}.json"


def write_whole(path: Path, content: bytes) -> None:
    """A file that appears whole or not at all, in place of the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
