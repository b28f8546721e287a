"""Rooms import downwards only; pyspark and numba stay in theirs; the oracle shares no evaluation code.

The order of the rooms is import-linter's contract in pyproject.toml. Here is what it cannot say. Imports inside
functions and under TYPE_CHECKING count like all others.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "trendloom"
MODULES = sorted(PACKAGE.rglob("*.py"))

HOMES = {"pyspark": "trendloom.engines.spark", "py4j": "trendloom.engines.spark", "numba": "trendloom.kernels"}
"""Libraries that appear in one room only."""

DOORS = {"trendloom", "trendloom.spark"}
"""Public modules at the top of the package: for users, and for what faces users."""

NO_ALGORITHMS = ("columns", "contract", "jit")
"""What kernels stand on: columns, the contract, the compiler. All else in `kernels` is algorithms."""

ORACLE_MAY_USE = (
    "trendloom.errors",
    "trendloom.expr.nodes",
    "trendloom.frontend",
    "trendloom.logical",
    "trendloom.model",
    "trendloom.pattern",
    "trendloom.reference",
)


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


CONTRACTS = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
NAMES = {name_of(path) for path in MODULES} | {name_of(path.parent / "__init__.py") for path in MODULES}


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, by full name, however it spells it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(path, node)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in NAMES else base
        elif isinstance(node, ast.Call) and is_dynamic_import(node.func):
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))


def absolute(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.relative_to(PACKAGE.parent).parts[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def is_dynamic_import(function: ast.expr) -> bool:
    return getattr(function, "attr", getattr(function, "id", None)) in ("import_module", "__import__")


def inside(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def test_rooms_import_downwards_only(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    status = lint_imports(config_filename=str(root / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize("library", HOMES)
def test_a_heavy_library_stays_in_its_room(library: str) -> None:
    home = HOMES[library]
    strays = [
        name_of(path)
        for path in MODULES
        if not inside(name_of(path), home) and any(inside(module, library) for module in imports(path))
    ]
    assert strays == [], f"{library} belongs into {home}"


def test_rooms_do_not_use_the_doors() -> None:
    facing_users = ("trendloom.cli", "trendloom.dashboard", "trendloom.__main__", *DOORS)
    strays = [
        (name_of(path), module)
        for path in MODULES
        if name_of(path) not in DOORS and not any(inside(name_of(path), room) for room in facing_users[:3])
        for module in imports(path)
        if module in DOORS
    ]
    assert strays == []


def test_the_oracle_shares_no_evaluation_code() -> None:
    strays = [
        (name_of(path), module)
        for path in MODULES
        if inside(name_of(path), "trendloom.reference")
        for module in imports(path)
        if inside(module, "trendloom") and not any(inside(module, room) for room in ORACLE_MAY_USE)
    ]
    assert strays == []


def algorithms() -> set[str]:
    """Rooms and modules of `kernels` that candidates alone know; all others learn of them through the contract."""
    found = {
        name.removeprefix("trendloom.kernels.").split(".")[0] for name in NAMES if inside(name, "trendloom.kernels")
    }
    return {f"trendloom.kernels.{one}" for one in found - {*NO_ALGORITHMS, "trendloom"}}


def room_of(name: str) -> str:
    return ".".join(name.split(".")[:2])


def above_the_planner() -> set[str]:
    """Rooms that import-linter's layers put above the planner."""
    (layers,) = (one for one in CONTRACTS if one["id"] == "layers")
    listed = [room.strip("() ") for layer in layers["layers"] for room in layer.split("|")]
    return {f"trendloom.{room}" for room in listed[: listed.index("planner")]}


def test_rooms_above_the_planner_name_no_algorithm() -> None:
    rooms = above_the_planner()
    assert {"trendloom.engines", "trendloom.runtime", "trendloom.streaming", "trendloom.viz"} <= rooms
    assert {"trendloom.kernels.shared", "trendloom.kernels.matching"} <= algorithms()
    strays = [
        (name_of(path), module)
        for path in MODULES
        if name_of(path) in DOORS or room_of(name_of(path)) in rooms
        for module in imports(path)
        if any(inside(module, room) for room in algorithms())
    ]
    assert strays == [], "ask the kernel: see trendloom.kernels.contract"


def test_fast_paths_do_not_lean_on_the_oracle() -> None:
    allowed = ("trendloom.reference", "trendloom.engines.reference.answers")
    strays = [
        name_of(path)
        for path in MODULES
        if not any(inside(name_of(path), room) for room in allowed)
        if any(inside(module, "trendloom.reference") for module in imports(path))
    ]
    assert strays == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import pyspark.sql", "pyspark.sql"),
        ("from numba import njit", "numba"),
        ("def f():\n    from trendloom import kernels", "trendloom.kernels"),
        ("from ..model import time", "trendloom.model.time"),
        ("import importlib\nimportlib.import_module('pyspark')", "pyspark"),
    ],
)
def test_every_spelling_of_an_import_is_seen(
    line: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "trendloom" / "lang"
    room.mkdir(parents=True)
    (room / "new.py").write_text(line)
    monkeypatch.setattr(__import__("sys").modules[__name__], "PACKAGE", tmp_path / "trendloom")
    assert found in imports(room / "new.py")
