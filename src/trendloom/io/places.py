"""Where a folder is: on this machine, or in a file system that its address names."""

from __future__ import annotations

import pyarrow.fs as fs


def place(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path in it."""
    if "://" in path or path.startswith("file:"):
        system, inside = fs.FileSystem.from_uri(path)
        return system, inside
    return fs.LocalFileSystem(), path
