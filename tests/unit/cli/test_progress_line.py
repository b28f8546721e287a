"""The line of progress: what is compiled stands in place of the stage, and the stage comes back."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from trendloom.cli import console


def test_the_line_says_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console, "errors_console", lambda: Console(file=screen, force_terminal=True, width=100))
    with console.progress(wanted=True) as shown:
        assert shown.compiling is not None
        shown.say("looking for matches")
        shown.compiling("sweep part")
        assert "compiling sweep part, once" in screen.getvalue()
        screen.truncate(0)
        shown.compiling(None)
        assert "looking for matches" in screen.getvalue()


def test_nobody_hears_of_it_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "errors_console", lambda: Console(file=io.StringIO()))
    with console.progress(wanted=True) as shown:
        assert shown.compiling is None
