"""Where there is no row the command says so on standard error, and what to look at next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import trendloom as tl
from trendloom.cli.main import app

EVENTS = "time,type,x\n1,A,1\n2,B,2\n3,B,5\n"


def run(tmp_path: Path, query: str, *words: str, engine: str = "local") -> Result:
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "query.tql").write_text(query)
    files = [str(tmp_path / "query.tql"), "--events", str(tmp_path / "events.csv")]
    result = CliRunner().invoke(app, ["run", *files, "--engine", engine, *words])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("returns", ["TRENDS", "COUNT(*)", "a.x, b.x", "MAX(b.x) AS most"])
def test_says_how_many_events_passed(tmp_path: Path, returns: str, engine: str) -> None:
    query = f"RETURN {returns} PATTERN SEQ(A a, NOT B n, B b) WHERE b.x > 9 AND a.x > 0"
    result = run(tmp_path, query, "-f", "jsonl", engine=engine)
    assert result.stdout.strip() == ""
    told = " ".join(result.stderr.split())
    assert "note: no match; events that pass the conditions on them alone: 1 of 1 A a, 0 of 2 B b" in told
    assert "hint: explain with --analyze says how far matching gets" in told


def test_spark_counts_them_too(spark: Any, tmp_path: Path) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A a, NOT B n, B b) WHERE b.x > 9 AND a.x > 0"
    told = " ".join(run(tmp_path, query, "-f", "jsonl", engine="spark").stderr.split())
    assert "note: no match; events that pass the conditions on them alone: 1 of 1 A a, 0 of 2 B b" in told


def test_having_may_be_the_reason(tmp_path: Path) -> None:
    told = run(tmp_path, "RETURN COUNT(*) PATTERN SEQ(A a, B b) HAVING COUNT(*) > 2").stderr
    assert "no row: there is no match, or none of a group that HAVING keeps; events" in told


def test_of_a_workload_the_query_is_named(tmp_path: Path) -> None:
    query = "QUERY none: PATTERN SEQ(B b, A a) QUERY some: PATTERN SEQ(A a, B b)"
    told = run(tmp_path, query, "-f", "jsonl").stderr
    assert "query none: no match; events that pass the conditions on them alone: 2 of 2 B b, 1 of 1 A a" in told
    assert "some" not in told


def test_quiet_says_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "PATTERN SEQ(B b, A a)", "--quiet", "-f", "jsonl").stderr == ""


def test_with_rows_nothing_is_said(tmp_path: Path) -> None:
    assert "no match" not in run(tmp_path, "PATTERN SEQ(A a, B b)").stderr


def test_python_gets_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS)
    rows = tl.run("RETURN COUNT(*) AS n PATTERN SEQ(B b, A a)", tmp_path / "events.csv")
    assert (rows.num_rows, rows.column_names) == (0, ["n"])


class TestLongNumbers:
    """Exact numbers of thousands of digits take long, which is said before they are computed."""

    QUERY = "RETURN COUNT(*) AS n PATTERN A a+"

    @pytest.fixture(autouse=True)
    def low_bar(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("trendloom.runtime.limits.WORTH_A_WARNING", 10_000)

    def events(self, number: int) -> str:
        return "time,type\n" + "".join(f"{time},A\n" for time in range(number))

    def test_the_command_warns_with_the_number_of_digits(self, tmp_path: Path) -> None:
        (tmp_path / "events.csv").write_text(self.events(4000))
        (tmp_path / "query.tql").write_text(self.QUERY)
        words = ["run", str(tmp_path / "query.tql"), "-e", str(tmp_path / "events.csv"), "--engine", "local"]
        told = " ".join(CliRunner().invoke(app, [*words, "-f", "jsonl"]).stderr.split())
        assert "warning: exact numbers of about 1,205 digits are computed, which takes long: --numeric log" in told
        assert CliRunner().invoke(app, [*words, "-f", "jsonl", "-q"]).stderr == ""
        assert "digits" not in CliRunner().invoke(app, [*words, "--numeric", "log"]).stderr

    def test_python_warns(self, tmp_path: Path) -> None:
        (tmp_path / "events.csv").write_text(self.events(4000))
        with pytest.warns(UserWarning, match=r'about 1,205 digits .* numeric="log" gives'):
            (row,) = tl.run(self.QUERY, tmp_path / "events.csv").to_pylist()
        assert row["n"] == str(2**4000 - 1)

    @pytest.mark.filterwarnings("error")
    def test_short_numbers_need_no_word(self, tmp_path: Path) -> None:
        (tmp_path / "events.csv").write_text(self.events(300))
        (row,) = tl.run(self.QUERY, tmp_path / "events.csv").to_pylist()
        assert int(row["n"]) == 2**300 - 1
