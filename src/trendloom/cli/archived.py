"""An archive as commands open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trendloom.archive import Archive


def open_archive_at(place: str) -> Archive:
    """The archive in a folder."""
    from trendloom.archive import open_archive

    return open_archive(Path(place))
