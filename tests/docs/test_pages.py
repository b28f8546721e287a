"""README and docs are executed: every query, program and command on a page gives what the page shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
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

from trendloom.frontend.tql.parser import parse
from trendloom.frontend.tql.printer import write

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL = [example for page in PAGES for example in examples(page)]
QUERIES = [example for example in ALL if example.block.kind == "tql" and example.expected is not None]
COMMANDS = [example for example in ALL if example.block.kind == "console"]


def programs(*, spark: bool) -> list[Path]:
    """Pages with programs; those of a page share their names, so a page is one test."""
    return [page for page in PAGES if any(_is_program(example, spark=spark) for example in examples(page))]


def _is_program(example: Example, *, spark: bool) -> bool:
    return example.block.kind == "python" and ("spark" in example.block.options) == spark


def shown_path(page: Path) -> str:
    return str(page.relative_to(ROOT))


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
def test_program_on_spark(page: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    run_programs(page, monkeypatch, lambda example: example.block.kind == "python")


def run_programs(page: Path, monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Example], bool]) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for example in filter(wanted, examples(page)):
        printed = run_python(example, names)
        if example.expected is not None:
            assert normal(printed) == normal(example.expected.text), example.name


# ------------------------------------------------------------------------------------------- what pages name


LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "examples" / "README.md", ROOT / "CONTRIBUTING.md"], ids=shown_path)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        if target.startswith("http"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor:
            assert anchor[1:] in anchors(file), f"{target}{anchor}"


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=shown_path)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), flags=re.MULTILINE)) <= targets


def test_the_query_of_the_readme_is_the_one_of_the_demo() -> None:
    (shown,) = [example.block.text for example in ALL if example.page == "README.md" and example.block.kind == "tql"]
    (asked,) = [query for query in parse((ROOT / "examples" / "nab.tql").read_text()) if query.name == "outages"]
    assert write(parse(shown)[0]) == write(replace(asked, name=None))


def test_the_query_of_the_quick_start_is_the_one_in_its_file() -> None:
    shown = next(e.block.text for e in ALL if e.page == "docs/quickstart.md" and e.block.kind == "tql")
    assert shown == (ROOT / "examples" / "quickstart.tql").read_text()
