from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from trendloom.engines import answers as engine
from trendloom.engines.answers import Answer, Watch
from trendloom.errors import RunError
from trendloom.options import Options

Command = Callable[..., Result]

MATCHES = "PATTERN SEQ(A a, B+ b[], C c) WHERE [user]"
COUNTS = "RETURN user, COUNT(*), AVG(B.value) PATTERN SEQ(A a, B*, C c) GROUP BY user WITHIN 10"
WORKLOAD = f"QUERY matches: {MATCHES}\nQUERY counts: {COUNTS}"


def objects(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


# -------------------------------------------------------------------------------------------- equal times


@pytest.mark.parametrize("order", [["--order", "file,line"], ["--order", "file", "--order", "line"]])
@pytest.mark.parametrize("engine", ["local", "reference"])
def test_columns_order_lines_of_one_second(run: Command, folder: Path, engine: str, order: list[str]) -> None:
    lines = ["time,type,file,line", "7,Stop,1,2", "7,Start,1,10", "7,Stop,2,1", "7,Start,,3"]
    (folder / "log.csv").write_text("\n".join(lines))
    text = "RETURN a.line, b.line AS stop PATTERN SEQ(Start a, Stop b) SEMANTICS contiguous WITHIN 1 s"
    found = objects(run(text, "--format", "jsonl", *order, events="log.csv", engine=engine))
    assert found == [{"a.line": 3, "stop": 2}, {"a.line": 10, "stop": 1}]
    assert objects(run(text, "--format", "jsonl", events="log.csv", engine=engine)) == []


def test_an_order_by_a_column_that_is_not_there(run: Command) -> None:
    result = run("PATTERN A", "--order", "lime")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: there is no column 'lime' to order events of equal time by\n" in result.stderr
    assert "(--order names it)" in result.stderr


# ------------------------------------------------------------------------------------------------ formats


def test_json_lines_give_matches_with_all_columns_and_the_variable(run: Command) -> None:
    rows = objects(run("PATTERN SEQ(A a, C c) WHERE [user]", "--format", "jsonl"))
    assert [[event["id"] for event in row["events"]] for row in rows] == [["a1", "c4"], ["a5", "c6"]]  # type: ignore[attr-defined]
    assert rows[0]["user"] == "x"
    assert rows[0]["events"][0] == {"id": "a1", "time": 1, "type": "A", "user": "x", "value": 3, "var": "a"}  # type: ignore[index]


def test_json_lines_give_groups_window_and_aggregates(run: Command) -> None:
    first, second = objects(run(COUNTS, "--format", "jsonl"))
    assert list(first) == ["user", "window_start", "window_end", "COUNT(*)", "AVG(B.value)"]
    assert list(first.values()) == ["x", 0, 10, 4, 6.0]
    assert list(second.values()) == ["y", 0, 10, 1, None]


def test_each_query_of_a_workload_keeps_its_own_columns_in_json_lines(run: Command) -> None:
    rows = objects(run(WORKLOAD, "--format", "jsonl"))
    assert [row["query"] for row in rows] == ["matches"] * 3 + ["counts"] * 2
    assert set(rows[0]) == {"query", "user", "events"}
    assert set(rows[-1]) == {"query", "user", "window_start", "window_end", "COUNT(*)", "AVG(B.value)"}


def test_csv_of_a_workload_has_the_columns_of_all_queries(run: Command) -> None:
    header, *lines = run(WORKLOAD, "--format", "csv").stdout.splitlines()
    assert header == "query,user,events,window_start,window_end,COUNT(*),AVG(B.value)"
    assert len(lines) == 5
    assert lines[-1] == "counts,y,,0,10,1,"


def test_columns_that_fit_no_common_table_are_refused(run: Command) -> None:
    text = "QUERY p: RETURN a.id AS v PATTERN A a\nQUERY q: RETURN a.value > 2 AS v PATTERN A a"
    result = run(text, "--format", "csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--format jsonl" in result.stderr
    assert len(objects(run(text, "--format", "jsonl"))) == 4


def test_the_table_shows_a_match_in_one_line(run: Command) -> None:
    result = run(MATCHES)
    assert "a:a1 → b:b2,b3 → c:c4" in result.stdout
    assert result.stdout.splitlines()[-1] == "3 rows"


def test_the_table_of_a_workload_names_its_queries(run: Command) -> None:
    lines = [line.strip() for line in run(WORKLOAD).stdout.splitlines()]
    assert lines.index("matches") < lines.index("counts")
    assert "NULL" in lines[-2]


def test_no_row_is_said(run: Command) -> None:
    assert run("PATTERN SEQ(C c, A a, C d, A e)").stdout == "no rows\n"
    assert run("PATTERN SEQ(C c, A a, C d, A e)", "--format", "jsonl").stdout == ""
    assert run("RETURN a.id PATTERN SEQ(C c, A a, C d)", "--format", "csv").stdout == "a.id\na5\n"


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_the_ending_of_the_output_tells_the_format(run: Command, folder: Path, name: str) -> None:
    result = run(MATCHES, "--output", name)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"note: 3 rows written to {name}\n"
    readers = {"rows.jsonl": lambda p: [json.loads(p.read_text().splitlines()[0])["user"]],
               "rows.csv": lambda p: [p.read_text().splitlines()[1].split(",")[0]],
               "rows.parquet": lambda p: pq.read_table(p).slice(0, 1)["user"].to_pylist()}  # fmt: skip
    assert readers[name](folder / name) == ["x"]


def test_a_format_wins_over_the_ending(run: Command, folder: Path) -> None:
    assert run(MATCHES, "--output", "rows.txt", "--format", "csv").exit_code == 0
    assert (folder / "rows.txt").read_text().startswith("user,events\n")


# --------------------------------------------------------------------------------------- choosing, limits


def test_one_query_of_a_workload_can_be_chosen(run: Command) -> None:
    assert {row["query"] for row in objects(run(WORKLOAD, "--query", "counts", "--format", "jsonl"))} == {"counts"}


def test_limit_is_per_query(run: Command) -> None:
    rows = objects(run(WORKLOAD, "--limit", "1", "--format", "jsonl"))
    assert [row["query"] for row in rows] == ["matches", "counts"]


def test_a_query_file_is_read(trendloom: Command, folder: Path) -> None:
    (folder / "q.tql").write_text("\ufeff-- a comment\nPATTERN A a")
    result = trendloom("run", "q.tql", "-e", "events.csv", "--engine", "local", "-f", "jsonl")
    assert len(objects(result)) == 2


def test_columns_may_have_other_names(run: Command, folder: Path) -> None:
    (folder / "other.csv").write_text("at,kind\n2024-01-01T00:00:00Z,A\n2024-01-01T00:01:00Z,B\n")
    rows = objects(
        run("RETURN b.time PATTERN SEQ(A a, B b) WITHIN 2 min", "-f", "jsonl", "--time", "at", "--type", "kind",
            events="other.csv")
    )  # fmt: skip
    assert rows == [{"b.time": "2024-01-01T00:01:00Z"}]


def test_the_reference_engine_gives_the_same_rows(run: Command) -> None:
    local = run(WORKLOAD, "--format", "jsonl").stdout.splitlines()
    assert sorted(run(WORKLOAD, "--format", "jsonl", engine="reference").stdout.splitlines()) == sorted(local)


def test_logarithms_on_demand(run: Command) -> None:
    rows = objects(run("RETURN COUNT(*) PATTERN SEQ(A a, B*, C c) WHERE [user]", "-f", "jsonl", "--numeric", "log"))
    assert rows == [{"COUNT(*)": pytest.approx(0.69897)}]


# ------------------------------------------------------------------------------ what goes beside the rows


def test_warnings_go_to_standard_error_and_rows_to_standard_output(run: Command) -> None:
    result = run("PATTERN SEQ(A a, Q?)", "--format", "jsonl")
    assert len(objects(result)) == 2
    assert result.stderr.splitlines()[:3] == [
        "warning: the events have no type 'Q'  (line 1, column 18)",
        "  PATTERN SEQ(A a, Q?)",
        "                   ^",
    ]


def test_quiet_leaves_warnings_and_notes_out(run: Command) -> None:
    result = run("PATTERN SEQ(A a, Q?)", "--quiet", "--output", "rows.csv")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_rows_that_cannot_be_sorted_are_announced(run: Command) -> None:
    result = run(MATCHES, "--format", "jsonl", "--memory-limit", "100")
    assert len(objects(result)) == 3
    assert result.stderr.startswith("note: rows are in the order in which they were found")


# ------------------------------------------------------------------------------------- all rows or none


def failing_after_one_batch(text: str, source: object, options: Options, watch: Watch) -> list[Answer]:
    """Like the local engine, but the second batch never comes."""
    (answer,) = true_answers(text, source, options, watch)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from answer.batches
        raise RunError("the disk is full")

    return [Answer(answer.plan, batches())]


true_answers = engine.answers


@pytest.mark.parametrize("format", ["table", "jsonl", "csv"])
def test_a_run_that_fails_in_the_middle_prints_no_row(
    run: Command, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(engine, "answers", failing_after_one_batch)
    result = run(MATCHES, "--format", format)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: the disk is full\n"


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_a_run_that_fails_in_the_middle_leaves_the_old_file(
    run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (folder / name).write_text("old")
    before = sorted(folder.iterdir())
    monkeypatch.setattr(engine, "answers", failing_after_one_batch)
    assert run(MATCHES, "--output", name).exit_code == 1
    assert (folder / name).read_text() == "old"
    assert sorted(folder.iterdir()) == before


def test_an_unexpected_error_is_one_line_without_traceback(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[Answer]:
        raise ZeroDivisionError("somewhere deep\nand more")

    monkeypatch.setattr(engine, "answers", broken)
    result = run(MATCHES)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: unexpected ZeroDivisionError: somewhere deep\nhint: ")
    assert "Traceback" not in result.stderr
    assert "Traceback" in run(MATCHES, "--debug").stderr


# -------------------------------------------------------------------------------------------------- times


def test_times_are_local_times_of_the_zone_that_is_named(run: Command, folder: Path) -> None:
    (folder / "paid.csv").write_text("time,type\n2018-04-01 23:30:00,Pay\n2018-04-02 00:30:00,Pay\n")
    query = "PATTERN Pay p WHERE p.time >= '2018-04-02' RETURN p.time AS at"
    zone = ("--time-zone", "Europe/Paris")
    assert objects(run(query, "-f", "jsonl", *zone, events="paid.csv")) == [{"at": "2018-04-01T22:30:00Z"}]
    heading, _, row, *_ = run(query, *zone, events="paid.csv").stdout.splitlines()
    assert (heading.strip(), row.strip()) == ("at (Europe/Paris)", "2018-04-02 00:30")
    refused = run(query, "--time-zone", "Paris", events="paid.csv")
    assert refused.exit_code == 2
    assert "did you mean 'Europe/Paris'?" in refused.stderr


@pytest.mark.parametrize("unit", [None, "ms", "s"])
def test_whole_numbers_that_hardly_count_seconds_are_doubted(run: Command, folder: Path, unit: str | None) -> None:
    lines = [f"{1_522_627_200_000 + 1000 * second},Pay" for second in range(5)]
    (folder / "paid.csv").write_text("\n".join(["time,type", *lines]))
    words = () if unit is None else ("--time-unit", unit)
    result = run("RETURN COUNT(*) PATTERN Pay WITHIN 10 min", "-f", "jsonl", *words, events="paid.csv")
    assert len(objects(result)) == (1 if unit == "ms" else 5)
    assert ("hint: write --time-unit ms; --time-unit s says that they are seconds" in result.stderr) == (unit is None)


def test_the_best_matches_are_drawn(run: Command, folder: Path) -> None:
    ranked = "PATTERN SEQ(A a, B b) RANK BY a.value + b.value DESC LIMIT 2"
    result = run(ranked, "--picture", "best.svg", "-f", "jsonl")
    assert (result.exit_code, result.stderr) == (0, "note: drawn: best.svg\n")
    assert [row["score"] for row in objects(result)] == [10, 8]
    assert "highest a.value + b.value" in (folder / "best.svg").read_text()
    assert run(ranked, "--picture", "best.svg", "-f", "jsonl", "-q").stderr == ""


def test_the_likeliest_matches_of_imprecise_time_are_drawn(run: Command, folder: Path) -> None:
    (folder / "perhaps.csv").write_text("low,high,type\n1,2,A\n1,2,B\n5,5,B\n")
    bounds = ("--time-low", "low", "--time-high", "high", "--picture", "likely.svg", "-f", "jsonl")
    result = run("PATTERN SEQ(A a, B b)", *bounds, events="perhaps.csv")
    assert (result.exit_code, result.stderr) == (0, "note: drawn: likely.svg\n")
    assert sorted(row["confidence"] for row in objects(result)) == [0.25, 1.0]
    drawn = (folder / "likely.svg").read_text()
    assert drawn.index(">1.000<") < drawn.index(">0.250<")


@pytest.mark.parametrize(
    ("query", "target", "said"),
    [
        ("PATTERN A a", "best.svg", "does not rank"),
        ("PATTERN A a RANK BY a.value LIMIT 1", "best.pdf", "ends in .svg or .png"),
        ("QUERY p: PATTERN A a\nQUERY q: PATTERN B b", "best.svg", "choose with --query: p, q"),
    ],
)
def test_a_picture_of_what_is_not_ranked_is_refused(run: Command, query: str, target: str, said: str) -> None:
    result = run(query, "--picture", target)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
