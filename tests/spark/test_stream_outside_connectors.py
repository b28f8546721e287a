"""A source and a sink from outside the package: run under `trendloom stream`, in its help, its checks and its hints."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.spark.outside_connectors import Diary, Tally
from typer.testing import CliRunner

from trendloom.cli.main import app
from trendloom.engines.spark.streaming.sinks import SINKS
from trendloom.engines.spark.streaming.sources import SOURCES
from trendloom.errors import OptionError
from trendloom.spark import register_sink, register_source
from trendloom.streaming import connectors

QUERY = "PATTERN SEQ(Recycle r, Operating o) WHERE [key] WITHIN 1 hour\n"
LINES = ["2024-09-02T07:02:00Z Recycle 3", "2024-09-02T07:05:00Z Recycle 4", "2024-09-02T07:45:00Z Operating 3"]
LATER = "2024-09-03T07:00:00Z Recycle 5"
"""Moves the watermark beyond the match."""


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (SOURCES, SINKS):
        monkeypatch.setattr(registry, "_classes", dict(registry.classes()))
    register_source(Diary)
    register_sink(Tally)


def test_a_stream_between_them(registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines").mkdir()
    Path("lines/1.txt").write_text("\n".join([*LINES, LATER]) + "\n")
    Path("q.tql").write_text(QUERY)
    words = "stream q.tql --source diary:lines --sink tally:rows --checkpoint state --trigger available-now"
    found = CliRunner().invoke(app, words.split())
    assert found.exit_code == 0, found.output
    counts = [int(line.split()[1]) for line in Path("rows").read_text().splitlines()]
    assert sum(counts) == 1


def test_help_and_errors_name_them(registered: None, tmp_path: Path) -> None:
    assert "diary:FOLDER (a line per event)" in SOURCES.help()
    shown = CliRunner().invoke(app, ["stream", "--help"], env={"COLUMNS": "200"}).output
    assert "diary:FOLDER" in shown
    assert "tally:FILE" in shown
    (tmp_path / "q.tql").write_text(QUERY)
    words = ["stream", str(tmp_path / "q.tql"), "--checkpoint", str(tmp_path / "state")]
    for source, message in [("dairy:lines", "did you mean 'diary'?"), ("diary:nowhere", "there is no diary nowhere")]:
        found = CliRunner().invoke(app, [*words, "--source", source])
        assert found.exit_code == 2
        assert message in found.output


def test_installed_packages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("diary", f"{Diary.__module__}:Diary", "trendloom.sources")
    monkeypatch.setattr(connectors, "entry_points", lambda group: [entry] if group == entry.group else [])
    monkeypatch.setattr(SOURCES, "_classes", dict(SOURCES.classes()))
    monkeypatch.setattr(SOURCES, "_loaded", False)
    assert SOURCES.find("diary") is Diary


def test_a_scheme_belongs_to_one_class(registered: None) -> None:
    class Other(Diary):
        pass

    with pytest.raises(OptionError, match="the source 'diary' is already"):
        SOURCES.register(Other)
