"""Messages name options as the user writes them: parameters in Python, flags for the command."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.engines.spark.tasks import Task
from trendloom.errors import DataError, Door, OptionError, at_door, open_door, option


@pytest.mark.parametrize(
    ("name", "value", "in_python", "for_the_command"),
    [
        ("time_unit", "ms", 'time_unit="ms"', "--time-unit ms"),
        ("limit", 10, "limit=10", "--limit 10"),
        ("analyze", True, "analyze=True", "--analyze"),
        ("time", None, "time=", "--time"),
        ("schema", "time timestamp, x long", 'schema="time timestamp, x long"', '--schema "time timestamp, x long"'),
    ],
)
def test_an_option_is_spelled_for_its_reader(
    name: str, value: str | int | None, in_python: str, for_the_command: str
) -> None:
    assert option(name, value) == in_python
    with at_door(Door.COMMAND):
        assert option(name, value) == for_the_command
    assert option(name, value) == in_python


def test_a_door_is_closed_after_an_error() -> None:
    with pytest.raises(OptionError), at_door(Door.COMMAND):
        raise OptionError("wrong")
    assert open_door() is Door.PYTHON


EVENTS = "at,type\n1.5,A\n"


def test_python_names_parameters_and_the_command_flags(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "query.tql").write_text("PATTERN A")
    events, query = str(tmp_path / "events.csv"), str(tmp_path / "query.tql")
    with pytest.raises(DataError, match=r"\(time= names it\)"):
        tl.run("PATTERN A", events)
    with pytest.raises(DataError, match=r'e\.g\. time_unit="ms"'):
        tl.check("PATTERN A", events, time="at")
    command = CliRunner()
    assert "(--time names it)" in command.invoke(app, ["check", query, "-e", events]).stderr
    assert "e.g. --time-unit ms" in command.invoke(app, ["check", query, "-e", events, "--time", "at"]).stderr


def test_refusals_in_explain_are_spelled_alike(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("low,high,type\n1,2,A\n")
    events = str(tmp_path / "events.csv")
    nots = ", ".join(f"NOT B n{number}, A a{number}" for number in range(9))
    query = f"PATTERN SEQ(A a, {nots}) SEMANTICS skip-till-next-match"
    assert 'engine="reference" runs it' in tl.explain(query, events, time_low="low", time_high="high")
    flags = ["-e", events, "--time-low", "low", "--time-high", "high"]
    assert "--engine reference runs it" in CliRunner().invoke(app, ["explain", "-", *flags], input=query).stdout


def test_a_task_on_spark_takes_the_door_of_its_driver_along() -> None:
    def body(_batches: object) -> object:
        raise DataError("wrong", hint=option("numeric", "log"))

    with at_door(Door.COMMAND):
        task = Task(body, (), pa.schema([]), open_door(), None)  # type: ignore[arg-type]
    (told,) = task(iter(()))
    assert "--numeric log" in told.column(told.num_columns - 1)[0].as_py()
    assert open_door() is Door.PYTHON
    assert pickle.loads(pickle.dumps(Door.COMMAND)) is Door.COMMAND
