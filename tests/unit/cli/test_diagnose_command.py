"""`trendloom diagnose` and `trendloom monitor` as people call them: tables, JSON, pictures, monitors, and mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from tests.unit.cli.conftest import Command
from tests.unit.engines.archived_runs import ABNORMAL, REFERENCE, archive_of_runs, begin_of
from typer.testing import CliRunner

from trendloom.cli.diagnose import BETWEEN, interval_of, joined_intervals
from trendloom.cli.entry import GIVING_WAY, LOWEST
from trendloom.cli.main import app

MARKED = ("--partition", "job=j3", "--abnormal", str(ABNORMAL[0]), str(ABNORMAL[1]))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive_of_runs(tmp_path_factory.mktemp("commands") / "archive").root


@pytest.fixture
def diagnose(root: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, ["diagnose", "--archive", str(root), *words])

    return call


def test_a_table_and_a_sentence(diagnose: Command) -> None:
    done = diagnose(*MARKED)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    (kept,) = [line for line in lines if line.endswith("kept") or " kept " in line.replace(", 1 kept,", "")]
    assert kept.startswith("Memory.free mean over 30 s")
    assert "false positive" in done.stdout
    assert "free memory (Memory.free mean over 30 s)" in lines[-1]
    assert "not shown (--all shows them)" in done.stdout
    assert "related partitions (by program)" in done.stderr
    everything = diagnose(*MARKED, "--all").stdout
    assert len(everything.splitlines()) > len(lines)
    assert "not shown" not in everything


def test_json_for_programs(diagnose: Command) -> None:
    done = diagnose(*MARKED, "--format", "json", "--quiet")
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert told["text"].startswith("Memory.free mean over 30 s <= ")
    assert [one["name"] for one in told["candidates"] if one["kept"]] == ["Memory.free mean over 30 s"]
    assert told["periods"][0]["low"] == ABNORMAL[0]
    assert {"reward", "validated", "why", "boundary"} <= set(told["candidates"][0])


def test_intervals_in_other_partitions_and_several_windows(diagnose: Command) -> None:
    reference = ("--reference", "job=j2", str(begin_of(2)), str(begin_of(2) + 300))
    more = ("--reference", str(REFERENCE[0]), str(REFERENCE[0] + 90))
    done = diagnose(*MARKED, *reference, *more, "--window", "30s", "--window", "1 min", "-f", "json")
    told = json.loads(done.stdout)
    marked = [(one["partition"]["job"], one["low"]) for one in told["periods"] if one["annotated"]]
    assert marked == [("j3", ABNORMAL[0]), ("j2", begin_of(2)), ("j3", REFERENCE[0])]
    assert {one["feature"]["window"] for one in told["candidates"]} == {30, 60}


def test_the_picture_is_drawn(diagnose: Command, tmp_path: Path) -> None:
    done = diagnose(*MARKED, "--picture", str(tmp_path / "why.svg"))
    assert done.exit_code == 0, done.stderr
    assert "<svg" in (tmp_path / "why.svg").read_text()[:1000]
    assert "drawn:" in done.stderr


def test_a_reason_becomes_a_monitor(diagnose: Command, root: Path) -> None:
    done = diagnose(*MARKED, "--save-as", "memory_low")
    assert "kept as monitor 'memory_low': precision 1.00, recall 1.00" in done.stderr
    assert "HAVING AVG(e.free) <= " in done.stderr
    told = json.loads(diagnose(*MARKED, "--save-as", "memory_low", "-f", "json").stdout)
    assert told["monitor"]["precision"] == 1
    assert told["monitor"]["query"].startswith("QUERY memory_low:")

    def monitor(*words: str) -> Result:
        return CliRunner().invoke(app, ["monitor", *words, "--archive", str(root)])

    alerts = monitor("memory_low", "--format", "jsonl").stdout.splitlines()
    assert len(alerts) == 16
    assert json.loads(alerts[0])["window_start"] == ABNORMAL[0]
    few = monitor("memory_low", "--from", str(ABNORMAL[0] + 60), "--to", str(ABNORMAL[0] + 120))
    assert "2 rows" in few.stdout
    assert "precision 1.00" in few.stderr
    assert "no window is like that" in monitor("memory_low", "--to", str(ABNORMAL[0] - 600)).stderr
    assert "memory_low" in monitor().stdout
    assert "1.00" in monitor().stdout
    wrong = monitor("memory_lo")
    assert wrong.exit_code == 2
    assert "did you mean 'memory_low'?" in wrong.stderr
    assert monitor("memory_low", "--from", "9", "--to", "3").exit_code == 2


def test_an_archive_without_monitors_says_how_to_make_one(tmp_path: Path) -> None:
    root = archive_of_runs(tmp_path / "archive").root
    assert "--save-as NAME" in CliRunner().invoke(app, ["monitor", "--archive", str(root)]).stdout


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--partition", "job=j3", "--abnormal", "4200"), 2, "takes two times"),
        (("--partition", "job=j3", "--abnormal", "4200", "--all"), 2, "takes two times"),
        (("--partition", "j3", "--abnormal", "4200", "4440"), 2, "--partition KEY=VALUE"),
        (("--partition", "job=j3", "--abnormal", "1", "2"), 2, "outside the archive"),
        (("--partition", "job=j9", "--abnormal", "4200", "4440"), 2, "no partition job = j9"),
        (("--partition", "job=j3", "--abnormal", "4441", "4460"), 2, "give a shorter --windows"),
        ((*MARKED, "--picture", "why.gif"), 2, "svg"),
        ((*MARKED, "--save-as", ""), 2, "needs a name"),
        ((*MARKED, "--related-by", "colour"), 2, "no dimension 'colour'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    diagnose: Command, words: tuple[str, ...], status: int, message: str
) -> None:
    done = diagnose(*words)
    assert done.exit_code == status, done.output
    assert done.stdout == ""
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_folder_that_is_no_archive(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["diagnose", "--archive", str(tmp_path / "none"), "--abnormal", "1", "2"])
    assert done.exit_code == 1
    assert "there is no archive" in done.stderr


def test_the_command_gives_way_to_live_streams() -> None:
    """In a process of its own, whatever its priority is."""
    script = "import os; from trendloom.cli.entry import give_way as g; g(); g(); print(os.nice(0))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == LOWEST
    assert "diagnose" in GIVING_WAY


# ---------------------------------------------------------------------------------------- words of intervals


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        (["--abnormal", "1", "2", "--all"], ["--abnormal", f"1{BETWEEN}2", "--all"]),
        (["--abnormal=1", "2"], ["--abnormal", f"1{BETWEEN}2"]),
        (["--abnormal", "-5", "-2"], ["--abnormal", f"-5{BETWEEN}-2"]),
        (
            ["--reference", "job=a", "line=b=c", "1", "2"],
            ["--reference", f"job=a{BETWEEN}line=b=c{BETWEEN}1{BETWEEN}2"],
        ),
        (["--query", "q"], ["--query", "q"]),
    ],
)
def test_words_of_an_interval_are_joined(words: list[str], joined: list[str]) -> None:
    assert joined_intervals(words) == joined


def test_an_interval_says_its_partition_first() -> None:
    assert interval_of(BETWEEN.join(["job=a", "line=b=c", "1", "2"]), "--reference") == (
        {"job": "a", "line": "b=c"}, "1", "2"
    )  # fmt: skip
    assert interval_of(f"1{BETWEEN}2", "--abnormal") == (None, "1", "2")
