"""The same rows from one file and from many, on every engine that needs no Spark, from Python and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.engines.event_files import QUERY, ROWS, TABLE, packed, save
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.errors import BindError, DataError, OptionError


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """Four events in three files; the columns of one stand in another order."""
    parts = [TABLE.slice(0, 1), TABLE.slice(1, 2).select(["id", "time", "type"]), TABLE.slice(3)]
    return [save(part, tmp_path / "e" / f"{n}.{request.param}") for n, part in enumerate(parts)]


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_lists_globs_and_folders(files: list[Path], engine: str) -> None:
    folder = files[0].parent
    for source in (files, [str(file) for file in files], folder, str(folder / "*"), f"file://{folder}"):
        assert tl.run(QUERY, source, engine=engine).to_pylist() == ROWS
    (warning,) = tl.check("PATTERN SEQ(A, Z)", files)
    assert "no type 'Z'" in warning.message
    assert "Physical plan" in tl.explain(QUERY, files)


def test_the_command_takes_several_files(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "q.tql").write_text(QUERY)
    events = [word for file in files for word in ("-e", str(file))]
    common = [str(tmp_path / "q.tql"), *events]
    found = CliRunner().invoke(app, ["run", *common, "--engine", "local", "--format", "jsonl"])
    assert [json.loads(line) for line in found.stdout.splitlines()] == ROWS
    assert CliRunner().invoke(app, ["check", *common]).stdout == "ok: 1 query\n"
    assert CliRunner().invoke(app, ["explain", *common]).exit_code == 0
    for file in files:
        refused = CliRunner().invoke(app, ["run", *common, "--engine", "local", "-f", "csv", "-o", str(file)])
        assert "the output would replace the events" in refused.stderr
    written = CliRunner().invoke(app, ["run", *common, "--engine", "local", "-f", "csv", "-o", str(tmp_path / "r.csv")])
    assert written.exit_code == 0


def test_the_output_is_not_one_of_the_files_of_a_folder(tmp_path: Path) -> None:
    save(TABLE, tmp_path / "e" / "1.csv")
    (tmp_path / "q.tql").write_text(QUERY)
    words = ["run", str(tmp_path / "q.tql"), "-e", str(tmp_path / "e"), "--engine", "local", "-o"]
    refused = CliRunner().invoke(app, [*words, str(tmp_path / "e" / "1.csv")])
    assert "the output would replace the events" in refused.stderr


def test_ids_that_are_not_numbers_are_not_joined(tmp_path: Path) -> None:
    save(TABLE, tmp_path / "e.csv")
    assert tl.run(QUERY, tmp_path / "e.csv").to_pylist() == ROWS
    merged = tl.run(QUERY, tmp_path / "e.csv", schema="id int").to_pylist()
    assert [row["id"] for row in merged] == [7, 7, 7, 7]


def test_a_schema_for_run_check_and_explain(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time,type,code\n1,A,1\n2,A,2\n")
    (tmp_path / "q.tql").write_text("PATTERN A a WHERE a.code = '1'")
    words = [str(tmp_path / "q.tql"), "-e", str(tmp_path / "e.csv")]
    for command in (["run", *words, "--engine", "local"], ["check", *words], ["explain", *words]):
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2
        assert "code" in refused.stderr
        assert CliRunner().invoke(app, [*command, "--schema", "code string"]).exit_code == 0


def test_a_schema_without_events_says_which_attributes_there_are() -> None:
    schema = "time timestamp, type string, amount decimal(10,2)"
    assert tl.check("PATTERN A a WHERE a.amount > 1 WITHIN 5 min", schema=schema) == []
    with pytest.raises(BindError, match="no attribute 'amuont'"):
        tl.check("PATTERN A a WHERE a.amuont > 1", schema=schema)
    assert "assumed" not in tl.explain("PATTERN A a WHERE a.amount > 1", schema=schema)
    with pytest.raises(OptionError, match="has types of its own"):
        tl.check("PATTERN A", TABLE.schema, schema="id string")


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("name", packed())
def test_text_lists_and_bytes_however_they_are_packed(name: str, engine: str) -> None:
    source = packed()[name]
    (row,) = tl.run("PATTERN SEQ(A a, B b) WHERE [key]", source, engine=engine).to_pylist()
    given = pa.table(source).to_pylist()
    assert [{name: event[name] for name in given[0]} for event in row["events"]] == given


def test_parquet_files_that_pack_text_differently_go_together(tmp_path: Path) -> None:
    plain = pa.table({"time": [1], "type": ["A"]})
    pq.write_table(plain, tmp_path / "1.parquet")
    pq.write_table(plain.set_column(1, "type", plain["type"].cast(pa.large_string())), tmp_path / "2.parquet")
    pq.write_table(plain.set_column(1, "type", plain["type"].dictionary_encode()), tmp_path / "3.parquet")
    assert tl.run("RETURN COUNT(*) AS n PATTERN A", tmp_path).to_pylist() == [{"n": 3}]


def test_a_list_of_something_else_is_refused() -> None:
    for source in ([], [TABLE], ["a.csv", None]):
        with pytest.raises(DataError, match="cannot read events from a list"):
            tl.run("PATTERN A", source)


def test_values_of_ranked_matches_are_read_from_parquet_with_all_that_breaks_ties(tmp_path: Path) -> None:
    events = pa.table({"time": [1, 1, 2], "type": ["A", "A", "B"], "x": [5, 5, 1], "id": ["second", "first", "b"]})
    pq.write_table(events, tmp_path / "events.parquet")
    query = "RETURN a.x PATTERN SEQ(A a, B b) RANK BY a.x + b.x LIMIT 2"
    rows = tl.run(query, tmp_path / "events.parquet").to_pylist()
    assert rows == tl.run(query, events, engine="reference").to_pylist()
    assert [row["rank"] for row in rows] == [1, 2]
