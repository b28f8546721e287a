"""What is probably not meant reaches the caller, of Python and of the command, once and with the way out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.errors import DataError

EVENTS = pa.table({"time": [1, 2, 3], "type": ["A", "B", "B"], "x": [1, 2, 3]})
PLAIN = EVENTS.drop_columns("type")
LOG = pa.table(
    {
        "time": [1, 1, 1, 2, 3, 3, 4, 5],
        "type": ["A", "A", "B", "B", "A", "B", "C", "C"],
        "k": [1, 1, 1, 1, 1, 2, 1, 1],
        "line": range(8),
    }
)


def told(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(one.filename == __file__ for one in found)  # they point at who called
    return [str(one.message) for one in found]


def command(tmp_path: Path, query: str, events: pa.Table, *options: str) -> tuple[str, str]:
    """What the command prints, rows and the rest."""
    (tmp_path / "q.tql").write_text(query)
    pa.csv.write_csv(events, tmp_path / "e.csv")
    arguments = ["run", str(tmp_path / "q.tql"), "-e", str(tmp_path / "e.csv"), "--engine", "local", *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr


class TestAbsentTypes:
    QUERY = "PATTERN SEQ(A a, Bee b)"

    @pytest.mark.parametrize("engine", ["local", "reference"])
    def test_run_warns(self, engine: str) -> None:
        (warning,) = told(lambda: tl.run(self.QUERY, EVENTS, engine=engine))
        assert warning.startswith("the events have no type 'Bee'")

    def test_of_a_workload_the_query_is_named(self) -> None:
        text = "QUERY good: PATTERN SEQ(A a, B b) QUERY bad: PATTERN SEQ(A a, Bee b)"
        (warning,) = told(lambda: tl.run(text, EVENTS))
        assert warning.startswith("query bad: the events have no type 'Bee'")

    def test_the_command_says_it_once(self, tmp_path: Path) -> None:
        _, errors = command(tmp_path, self.QUERY, EVENTS)
        assert errors.count("the events have no type 'Bee'") == 1
        _, errors = command(tmp_path, self.QUERY, EVENTS, "--quiet")
        assert errors == ""


class TestNoTypeColumn:
    def test_every_event_is_of_the_only_type(self) -> None:
        query = "PATTERN SEQ(Tick a, Tick b) WHERE a.x + 1 = b.x"
        found: list[pa.Table] = []
        (note,) = told(lambda: found.append(tl.run(query, PLAIN)))
        assert note.startswith("the events have no column 'type': every one is taken for a 'Tick'")
        typed = PLAIN.append_column("type", pa.array(["Tick"] * 3))
        assert found[0].equals(tl.run(query, typed))
        with pytest.warns(UserWarning, match="no column 'type'"):
            assert tl.run(query, PLAIN, engine="reference").equals(found[0])

    def test_a_workload_of_one_type(self) -> None:
        text = "QUERY a: PATTERN Tick t QUERY b: RETURN COUNT(*) PATTERN SEQ(Tick t, NOT Tick u, Tick v)"
        assert len(told(lambda: tl.run(text, PLAIN))) == 1

    def test_several_types_need_a_column(self) -> None:
        with pytest.raises(DataError, match="names several types: 'A', 'B'") as error:
            tl.run("PATTERN SEQ(A a, NOT B b, A c)", PLAIN)
        assert error.value.hint is not None
        assert "CASE WHEN" in error.value.hint

    def test_a_column_that_was_named_must_be_there(self) -> None:
        with pytest.raises(DataError, match="there is no column 'kind'"):
            tl.run("PATTERN Tick t", PLAIN, type="kind")

    def test_types_in_another_column_are_not_overlooked(self) -> None:
        with pytest.raises(DataError, match="but column 'kind' holds 'A'") as error:
            tl.run("PATTERN A a", EVENTS.rename_columns(["time", "kind", "x"]))
        assert error.value.hint == 'if that is the type, write type="kind"'
        with pytest.raises(DataError, match="there is no column 'type'"):
            tl.run("PATTERN Z z", EVENTS.rename_columns(["time", "Type", "x"]))

    def test_parquet_check_and_explain(self, tmp_path: Path) -> None:
        pq.write_table(PLAIN, tmp_path / "e.parquet")
        (note,) = tl.check("PATTERN Tick t", tmp_path / "e.parquet")
        assert isinstance(note, tl.errors.QueryNote)
        assert "-- the events have no column 'type'" in tl.explain("PATTERN Tick t", tmp_path / "e.parquet")
        with pytest.warns(UserWarning, match="no column 'type'"):
            assert len(tl.run("PATTERN Tick t", tmp_path / "e.parquet")) == 3

    def test_the_command_says_it_in_a_note(self, tmp_path: Path) -> None:
        rows, errors = command(tmp_path, "PATTERN Tick t RETURN t.x AS x", PLAIN, "-f", "csv")
        assert rows == "x\n1\n2\n3\n"
        assert errors.startswith("note: the events have no column 'type'")
        assert "--type" in errors
        result = CliRunner().invoke(app, ["check", str(tmp_path / "q.tql"), "-e", str(tmp_path / "e.csv")])
        assert "ok: 1 query\n" in result.output


class TestEqualTimes:
    def test_their_number_is_told(self) -> None:
        (warning,) = told(lambda: tl.run("PATTERN SEQ(A a, B b)", LOG))
        assert warning.startswith("5 of 6 events have the same time as another: these have no order")
        assert 'order="COLUMN"' in warning

    def test_only_those_of_a_partition_count(self) -> None:
        (warning,) = told(lambda: tl.run("PATTERN SEQ(A a, B b) WHERE [k]", LOG))
        assert warning.startswith("3 of 6 events have the same time as another of equal k")

    @pytest.mark.parametrize(
        "query",
        [
            "PATTERN A a",
            "RETURN COUNT(*) PATTERN A | B",
            "PATTERN SEQ(C c, C d)",
            "PATTERN SEQ(A a, B b) WHERE a.line > 1 AND b.line > 2",
        ],
        ids=["one event each", "one of either", "different times", "too few that pass"],
    )
    def test_nothing_is_said_where_it_does_not_matter(self, query: str) -> None:
        assert told(lambda: tl.run(query, LOG)) == []

    @pytest.mark.parametrize(
        "query", ["RETURN COUNT(*) PATTERN A+", "RETURN COLLAPSED TRENDS PATTERN SEQ(A+ a[], B b)"]
    )
    def test_aggregates_and_collapsed_trends(self, query: str) -> None:
        log = pa.concat_tables([LOG, LOG])
        (warning,) = told(lambda: tl.run(query, log))
        assert "events have the same time as another" in warning

    def test_an_order_that_resolves_them_is_enough(self) -> None:
        assert told(lambda: tl.run("PATTERN SEQ(A a, B b)", LOG, order="line")) == []

    def test_those_that_an_order_leaves_are_told(self) -> None:
        (warning,) = told(lambda: tl.run("PATTERN SEQ(A a, B b)", LOG, order="k"))
        assert warning.startswith("3 of 6 events have the same time as another and equal k")
        assert "add a column that tells them apart" in warning

    def test_a_small_share_is_not_worth_a_word(self) -> None:
        times = [*range(1000), 5, 6, 7, 8]
        table = pa.table({"time": times, "type": ["A"] * len(times)})
        assert told(lambda: tl.run("RETURN COUNT(*) PATTERN SEQ(A a, A b)", table)) == []

    def test_the_command_says_it(self, tmp_path: Path) -> None:
        _, errors = command(tmp_path, "PATTERN SEQ(A a, B b)", LOG)
        assert "warning: 5 of 6 events have the same time as another" in errors
        assert "--order COLUMN" in errors
