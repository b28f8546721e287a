"""First answers: how much the usual queries compile, that nothing is compiled twice, and that it can be done ahead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.engines import precompile
from trendloom.engines.precompile import MORE, USUAL, made_up, usual_events
from trendloom.kernels.jit.interpreted import interpreted_only
from trendloom.options import Options
from trendloom.runtime.reading import load, queries_of

MOST = {"rows, contiguous": 34, "COMPLETE TRENDS": 24}
"""Functions that such a query compiles after those before it, in an empty folder. Lower them when you can."""

EACH = """
import json, sys
from trendloom.engines.precompile import USUAL, UsualRun
names = json.loads(sys.argv[1])
print(json.dumps({name: UsualRun(name, USUAL[name], 500).run() for name in names}))
"""


def compiled_apart(cache: Path, names: list[str]) -> dict[str, int]:
    """How many functions a process of its own compiles for each of these queries, one after the other."""
    environment = {**os.environ, "TRENDLOOM_CACHE": str(cache)}
    command = [sys.executable, "-c", EACH, json.dumps(names)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code")


@pytest.fixture(scope="module")
def first(cache: Path) -> dict[str, int]:
    return compiled_apart(cache, list(MOST))


FIRST = """
import json
from trendloom.engines.precompile import USUAL, usual_events
from trendloom.engines.answers import answers, table_of
from trendloom.options import Options
from trendloom.kernels.jit.compiled import counting_compilations
with counting_compilations() as found:
    rows = {name: len(table_of(answers(query, usual_events(400), Options()))) for name, query in USUAL.items()}
print(json.dumps([rows, sorted(found)]))
"""


def test_first_answers_wait_for_no_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "TRENDLOOM_CACHE": str(tmp_path), "TRENDLOOM_COMPILE": "auto"}
    done = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True)
    rows, compiled = json.loads(done.stdout)
    assert compiled == []
    assert {name: len(tl.run(query, usual_events(400))) for name, query in USUAL.items()} == rows


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*USUAL, *MORE])
def test_everything_that_is_compiled_ahead_is_a_query_with_rows(name: str) -> None:
    with interpreted_only():
        assert tl.run((USUAL | MORE)[name], usual_events(600)).num_rows > 0


def test_usual_queries_compile_few_functions(first: dict[str, int]) -> None:
    assert {name: count for name, count in first.items() if count > MOST[name]} == {}
    assert list(first) == list(MOST)


def test_a_second_process_compiles_nothing(first: dict[str, int], cache: Path) -> None:
    assert sum(first.values()) > 0
    assert compiled_apart(cache, list(MOST)) == dict.fromkeys(MOST, 0)


def test_warm_compiles_ahead_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRENDLOOM_CACHE", str(tmp_path))
    few = [precompile.UsualRun("rows, contiguous", USUAL["rows, contiguous"], 500)]
    monkeypatch.setattr(precompile, "usual_runs", lambda: few)
    said = [CliRunner().invoke(app, ["warm", "--processes", "1"]) for _ in range(2)]
    assert [one.exit_code for one in said] == [0, 0]
    assert "functions compiled: 1 kinds of queries are ready" in said[0].output
    assert "nothing to compile: 1 kinds of queries are ready" in said[1].output
    assert compiled_apart(tmp_path, ["rows, contiguous"]) == {"rows, contiguous": 0}


def test_what_is_compiled_ahead_are_usual_queries_over_few_and_many_events() -> None:
    found = precompile.usual_runs()
    assert {one.query for one in found} == {*USUAL.values(), *MORE.values()}
    assert {one.events > precompile.MANY for one in found} == {True, False}


def test_a_rehearsal_over_made_up_events_compiles_what_the_query_needs(tmp_path: Path) -> None:
    """As Spark's driver has it done while Spark starts: only the columns are known."""
    code = (
        "import sys; from trendloom.engines.precompile import USUAL, usual_events\n"
        "from trendloom.engines import precompile\n"
        "from trendloom.options import Options\n"
        "from trendloom.runtime.reading import load, queries_of\n"
        "precompile.begin(queries_of(USUAL['rows, contiguous']), load(usual_events(40_000), Options()), Options())\n"
        "assert precompile._running; precompile.wait()"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "TRENDLOOM_CACHE": str(tmp_path)}, check=True)
    assert compiled_apart(tmp_path, ["rows, contiguous"]) == {"rows, contiguous": 0}


@pytest.mark.parametrize("name", USUAL)
def test_made_up_events_fit_the_query(name: str) -> None:
    (query,) = queries_of(USUAL[name])
    columns = usual_events(1).schema
    table = made_up(query, columns, 30, Options())
    assert table.schema == columns
    assert len(set(table["type"].to_pylist())) > 1 or name == "COMPLETE TRENDS"
    assert table["price"].null_count == 0


def test_a_source_whose_columns_are_not_known_is_not_rehearsed() -> None:
    precompile.begin(queries_of(USUAL["COUNT(*)"]), object(), Options())
    assert precompile._running == []


def test_few_events_are_not_rehearsed() -> None:
    precompile.begin(queries_of(USUAL["COUNT(*)"]), load(usual_events(9), Options()), Options())
    assert precompile._running == []
