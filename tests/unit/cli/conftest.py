"""A stream of eight events, and the command as people call it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from trendloom.cli.main import app

Command = Callable[..., Result]

EVENTS = """\
id,time,type,user,value
a1,1,A,x,3
b2,2,B,x,5
b3,3,B,x,7
c4,4,C,x,1
a5,5,A,y,2
c6,6,C,y,4
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: events.csv, and whatever a test puts there."""
    (tmp_path / "events.csv").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def trendloom(folder: Path) -> Command:
    """Call the command with these words; `text` goes to standard input."""

    def call(*words: str, text: str | None = None) -> Result:
        return CliRunner().invoke(app, list(words), input=text)

    return call


@pytest.fixture
def run(trendloom: Command) -> Command:
    """Run a query over events.csv on the local engine."""

    def call(text: str, *words: str, events: str = "events.csv", engine: str = "local") -> Result:
        return trendloom("run", "-", "--events", events, "--engine", engine, *words, text=text)

    return call
