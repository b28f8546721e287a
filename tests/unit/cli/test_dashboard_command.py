"""`trendloom dashboard` says at once what it cannot do: listen where others are, show what is no archive."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.dashboard.small_archive import make_archive
from tests.unit.cli.conftest import Command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "--token"),
        (("--token", "short"), "can be guessed"),
        (("--port", "70000"), "--port 8050"),
        (("--time-limit", "0"), "greater than 0"),
        (("--memory-limit", "much"), "not an amount of memory"),
    ],
)
def test_options_that_make_no_sense(trendloom: Command, words: tuple[str, ...], said: str) -> None:
    result = trendloom("dashboard", "archive", *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_folder_that_is_no_archive(trendloom: Command, folder: Path) -> None:
    result = trendloom("dashboard", str(folder))
    assert result.exit_code != 0
    assert "error:" in result.stderr
    assert "hint:" in result.stderr


def test_a_place_where_another_listens(trendloom: Command, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "plant")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = trendloom("dashboard", str(archive), "--port", str(port))
    assert result.exit_code == 1
    assert f"nobody can listen at 127.0.0.1:{port}" in result.stderr
    assert f"--port {port + 1}" in result.stderr
