"""README and docs are executed: every query, program and command on a page gives what the page shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.docs.blocks import (
    ROOT,
    Example,
    commands,
    examples,
    normal,
    refusal,
    run_command,
    run_python,
    run_query,
)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL = [example for page in PAGES for example in examples(page)]
QUERIES = [example for example in ALL if example.block.kind == "tql" and example.expected is not None]
COMMANDS = [example for example in ALL if example.block.kind == "console"]


def programs(*, spark: bool) -> list[Path]:
    """Pages with programs; those of a page share their names, so a page is one test."""
    return [page for page in PAGES if any(_is_program(example, spark=spark) for example in examples(page))]


def _is_program(example: Example, *, spark: bool) -> bool:
    return example.block.kind == "python" and ("spark" in example.block.options) == spark


def by_name(example: Example) -> str:
    return example.name


@pytest.mark.parametrize("example", QUERIES, ids=by_name)
def test_query(example: Example) -> None:
    assert example.expected is not None
    only_reference = "reference" in example.block.options
    shown, defined = normal(example.expected.text), normal(run_query(example, "reference"))
    assert sorted(defined) == sorted(shown)  # rows that begin and end at the same times have no order
    if not only_reference:
        assert normal(run_query(example, "local")) == shown
    else:
        assert "yet" in (refusal(example) or "the local engine runs it: say so on the page")


@pytest.mark.parametrize("example", COMMANDS, ids=by_name)
def test_command(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for command, shown in commands(example.block):
        if command.startswith("trendloom"):
            assert normal(run_command(command)) == normal(shown), command


@pytest.mark.parametrize("page", programs(spark=False), ids=lambda page: page.name)
def test_program(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_programs(page, monkeypatch, lambda example: _is_program(example, spark=False))


@pytest.mark.parametrize("page", programs(spark=True), ids=lambda page: page.name)
def test_program_on_spark(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_programs(page, monkeypatch, lambda example: example.block.kind == "python")


def run_programs(page: Path, monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Example], bool]) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for example in filter(wanted, examples(page)):
        printed = run_python(example, names)
        if example.expected is not None:
            assert normal(printed) == normal(example.expected.text), example.name
