"""Damaged files: whatever is wrong with them, reading gives events, or an error of ours that says something."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.io.damage import SEEDS, damaged, outcome

COUNT = 1200


@pytest.mark.parametrize("ending", SEEDS)
def test_sound_files_are_read(ending: str, tmp_path: Path) -> None:
    for number, content in enumerate(SEEDS[ending]):
        path = tmp_path / f"{number}{ending}"
        path.write_bytes(content)
        assert outcome(path) is None


@pytest.mark.parametrize("ending", SEEDS)
def test_damaged_files_give_our_errors_only(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{ending}"
    said = []
    for number in range(COUNT):
        path.write_bytes(damaged(ending, number))
        said.append(outcome(path))
    assert sum(message is not None for message in said) > COUNT // 4, "the damage does too little"
