"""The table that leads from the algorithms of the papers to their files leads to files that are there."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_file_of_the_table_exists(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text()
    table = page.partition("## From the papers to the files")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and ".py" in line]
    named = [re.findall(r"`([\w/]+\.py)`", row) for row in rows]
    assert len(rows) >= 15
    assert [row for row, files in zip(rows, named, strict=True) if not files] == []
    assert [name for files in named for name in files if not (root / "src/trendloom" / name).is_file()] == []
