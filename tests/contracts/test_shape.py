"""Modules say why they exist, stay small, carry names that mean something, and leave nothing half done."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

import trendloom
import trendloom.spark
from trendloom.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
SOURCE = sorted((ROOT / "src").rglob("*.py"))
PYTHON = sorted(path for room in ("src", "tests", "benchmarks", "examples") for path in (ROOT / room).rglob("*.py"))

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base2"}
LINES = 500
PARAMETERS = 8
FLAG = re.compile(r"(?<![\w-])--[a-z]")
MARKS = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", r"mark\.(sk" + "ip|xf" + r"ail)\b"]))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCE, ids=shown)
def test_module_says_why_it_exists(path: Path) -> None:
    tree = ast.parse(path.read_text())
    empty_room = path.name == "__init__.py" and not tree.body
    assert empty_room or ast.get_docstring(tree), "begin the module with a docstring: the idea, its cost"


def test_files_are_small() -> None:
    long = {shown(path): count for path in PYTHON if (count := len(path.read_text().splitlines())) > LINES}
    assert long == {}


def doors() -> set[tuple[str, str]]:
    """Functions that users call: of the public modules, and of commands, whose parameters are flags."""
    public = [getattr(module, name) for module in (trendloom, trendloom.spark) for name in module.__all__]
    commands = [one.callback for one in app.registered_commands]
    found = map(inspect.unwrap, filter(inspect.isfunction, [*public, *commands]))
    return {(inspect.getsourcefile(one) or "", one.__name__) for one in found}


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters that a caller gives."""
    named = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return named[1:] if named[:1] in (["self"], ["cls"]) else named


def test_functions_take_few_parameters() -> None:
    apart = doors()
    assert len(apart) > 10
    long = {
        f"{shown(path)}:{node.lineno} {node.name}": len(parameters_of(node))
        for path in SOURCE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(parameters_of(node)) > PARAMETERS
        if (str(path), node.name) not in apart
    }
    assert long == {}, "bundle what belongs together"


def test_unit_tests_mirror_the_tree() -> None:
    """A folder of tests is named like the folder that it tests, in the same place of its tree."""
    rooms = (ROOT / "src" / "trendloom", ROOT, ROOT / "tests")
    folders = {
        path.parent.relative_to(ROOT / "tests" / "unit") for path in (ROOT / "tests" / "unit").rglob("test_*.py")
    }
    assert len(folders) > 20
    assert [str(one) for one in folders if not any((room / one).is_dir() for room in rooms)] == []


def test_names_mean_something() -> None:
    parts = {(shown(path), part) for path in PYTHON for part in path.relative_to(ROOT).with_suffix("").parts}
    assert [path for path, part in parts if part.strip("_") in FORBIDDEN_NAMES] == []


def test_a_class_name_has_one_meaning() -> None:
    """An underscore does not make another word of it."""
    homes = defaultdict(list)
    for path in SOURCE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].append(f"{shown(path)}:{node.lineno}")
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_nothing_is_marked_as_left_undone() -> None:
    left = [shown(path) for path in PYTHON if MARKS.search(path.read_text())]
    assert left == []


def test_test_files_have_unique_names() -> None:
    names = [path.name for path in PYTHON if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


def test_kernels_add_no_truths() -> None:
    """Compiled, True + True is 2; interpreted by NumPy it is True. `int(...)` says which one is meant."""
    kernels = [path for path in SOURCE if "kernels" in path.parts]
    assert len(kernels) > 50
    found = [
        f"{shown(path)}:{node.lineno}"
        for path in kernels
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        if is_truth(node.left) and is_truth(node.right)
    ]
    assert found == []


def is_truth(node: ast.expr) -> bool:
    """Whether an expression is a comparison, or made of them."""
    if isinstance(node, ast.BoolOp):
        return all(map(is_truth, node.values))
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def test_only_the_command_spells_its_flags() -> None:
    """Python's users read the same messages: `errors.option` spells an option for the reader."""
    rooms = [path for path in SOURCE if "cli" not in path.parts]
    spelled = {shown(path): found for path in rooms if (found := [text for text in texts(path) if FLAG.search(text)])}
    assert spelled == {}, "write option('time_unit', 'ms'); see trendloom.errors"


def texts(path: Path) -> list[str]:
    """The strings of a module that are not documentation."""
    tree = ast.parse(path.read_text())
    standing_alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [str(node.value) for node in strings if id(node) not in standing_alone]
