"""Every way to ask for a stream wrongly: refused before Spark starts, with the way out; and what signals do to one."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from click.testing import Result

from trendloom.archive import create_archive
from trendloom.cli.live import WorkloadMessages, _stopped_by_signals
from trendloom.errors import BindError, QueryNote, QueryWarning, Span
from trendloom.model.time import TimeAxis

Command = Callable[..., Result]

BAD_DATA, BAD_OPTIONS = 1, 2


@pytest.fixture
def stream(trendloom: Command, folder: Path) -> Command:
    """`stream(...)` with a source, a sink and a checkpoint that are fine, unless a test says other ones."""
    (folder / "days").mkdir()
    (folder / "days" / "1.csv").write_text("time,type\n1,A\n")
    (folder / "empty").mkdir()

    def call(*words: str, text: str = "PATTERN A WITHIN 5", **other: str) -> Result:
        given = {"source": "days", "checkpoint": "state", **other}
        return trendloom("stream", "-", *(f"--{name}={value}" for name, value in given.items()), *words, text=text)

    return call


def refused(result: Result, status: int, *parts: str) -> None:
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.stderr
    assert "starting Spark" not in result.stderr
    for part in parts:
        assert part in result.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("parqet:days", "did you mean 'parquet'?"),
        ("empty", "holds no files of events yet"),
        ("csv:empty", "its columns are not known"),
        ("csv:", "needs a folder"),
        ("days/1.csv", "is a file"),
        ("s3://bucket/days", "does not show its format"),
        ("csv:s3://bucket/days", "are not known"),
        ("rate:many", "'many' is not a rate"),
        ("rate:0", "'0' is not a rate"),
        ("kafka:broker/topic", "does not name a broker and a topic"),
        ("kafka:broker:9092", "does not name a broker and a topic"),
        ("kafka:broker:9092/topic", "give --schema"),
    ],
)
def test_a_bad_source(stream: Command, source: str, message: str) -> None:
    refused(stream(source=source), BAD_OPTIONS, message)


def test_a_folder_with_files_of_two_formats(stream: Command, folder: Path) -> None:
    (folder / "days" / "2.jsonl").write_text('{"time": 1, "type": "A"}\n')
    refused(stream(), BAD_OPTIONS, "files of several formats", "say parquet:days, csv:days or jsonl:days")


def test_a_folder_that_is_not_there_is_bad_data(stream: Command) -> None:
    refused(stream(source="csv:nowhere"), BAD_DATA, "the folder nowhere does not exist")


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("parket:rows", "did you mean 'parquet'?"),
        ("rows", "give console, memory:NAME"),
        ("console:here", "needs no place"),
        ("parquet:", "needs a place"),
        ("memory:two words", "not a name of a table"),
        ("sqlite:rows.db", "does not name a file and a table"),
        ("sqlite:/rows.db", "does not name a file and a table"),
        ("sqlite:days/matches", "days is a folder"),
        ("sqlite:nowhere/rows.db/matches", "there is no folder nowhere"),
    ],
)
def test_a_bad_sink(stream: Command, sink: str, message: str) -> None:
    refused(stream(sink=sink), BAD_OPTIONS, message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--watermark", "soon"], "'soon' is not a delay"),
        (["--trigger", "now and then"], "available-now"),
        (["--buckets", "0"], "at least one bucket"),
        (["--retries", "-1"], "0 or more"),
        (["--max-files", "0"], "at least 1"),
        (["--source", "rate:5", "--max-files", "2"], "for folders only"),
        (["--source", "rate:5", "--schema", "time long"], "columns of their own"),
        (["--conf", "spark.x"], "--conf KEY=VALUE"),
        (["--option", "=5"], "--option KEY=VALUE"),
        (["--format", "table", "--sink", "parquet:rows"], "for rows on the console"),
        (["--query", "kites"], "there is no query 'kites'"),
        (["--metrics", "nowhere/m.prom"], "there is no folder nowhere"),
        (["--master", "sc://127.0.0.1:1", "--sink", "console"], "do not come to this console"),
    ],
)
def test_a_bad_option(stream: Command, options: list[str], message: str) -> None:
    refused(stream(*options), BAD_OPTIONS, message)


def test_queries_come_from_one_file(trendloom: Command, folder: Path) -> None:
    words = ["stream", "--source", "csv:.", "--checkpoint", "state"]
    refused(trendloom(*words), BAD_OPTIONS, "there are no queries to run", "--watch FILE if it may change")
    (folder / "q.tql").write_text("PATTERN A WITHIN 5")
    refused(trendloom(*words, "q.tql", "--watch", "p.tql"), BAD_OPTIONS, "queries come from one file: q.tql, or p.tql")
    refused(trendloom(*words, "--watch", "p.tql"), BAD_OPTIONS, "there is no query file p.tql", "did you mean 'q.tql'?")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--watch", "-"], "standard input cannot be watched"),
        (["--watch", "q.tql", "--query", "kites"], "leave out --query"),
        (["--watch", "q.tql", "--sink", "memory:rows"], "a sink that lasts"),
        (
            ["--watch", "q.tql", "--master", "sc://127.0.0.1:1", "--sink", "parquet:rows"],
            "the checkpoint is the server's",
        ),
    ],
)
def test_what_does_not_go_with_a_file_that_is_watched(
    stream: Command, trendloom: Command, folder: Path, words: list[str], message: str
) -> None:
    (folder / "q.tql").write_text("QUERY kites: PATTERN A WITHIN 5")
    given = ["--source", "days", "--checkpoint", "state"]
    refused(trendloom("stream", *given, *words, text="QUERY kites: PATTERN A WITHIN 5"), BAD_OPTIONS, message)


def test_a_bad_query(stream: Command) -> None:
    refused(stream(text="PATTERN"), BAD_OPTIONS, "line 1")


@pytest.mark.parametrize("option", ["--checkpoint", "--late-to"])
def test_a_folder_that_cannot_be_written(stream: Command, option: str) -> None:
    refused(stream(option, "days/1.csv/state"), BAD_DATA, "cannot be written: Not a directory", "give another folder")


@pytest.mark.parametrize("missing", ["--source", "--checkpoint"])
def test_source_and_checkpoint_must_be_given(trendloom: Command, missing: str) -> None:
    words = [word for name in ("--source", "--checkpoint") if name != missing for word in (name, "x")]
    result = trendloom("stream", "-", *words, text="PATTERN A")
    assert result.exit_code == BAD_OPTIONS
    assert missing in result.stderr


@pytest.mark.parametrize("quiet", [False, True])
def test_what_is_told_of_a_workload(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing while Spark starts; who wants no notes still hears what was refused."""
    messages = WorkloadMessages("q.tql", quiet)
    messages.warn(QueryNote("query 'new' is new"), None)
    assert capsys.readouterr().err == ""
    messages.begin()
    messages.warn(QueryWarning("it is hot"), "hot")
    told = "" if quiet else "note: query 'new' is new\nwarning in query hot: it is hot\n"
    assert capsys.readouterr().err == told
    text = "QUERY hot: PATTERN A"
    messages.refuse(BindError("there is no A", Span(1, 20), hint="write B", text=text))
    shown = f"refused: a change of q.tql: there is no A  (line 1, column 20)\n  {text}\n{' ' * 21}^\nhint: write B\n"
    assert capsys.readouterr().err == shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_ends_a_stream_in_good_order_and_a_second_at_once(number: signal.Signals) -> None:
    stop, before = Event(), signal.getsignal(number)
    try:
        with _stopped_by_signals(stop):
            signal.raise_signal(number)
            assert stop.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
    finally:
        logging.disable(logging.NOTSET)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--monitor", "m"], "which archive keeps the monitor?"),
        (["--monitor", "m", "--archive", "a", "q.tql"], "queries (q.tql) or monitors, not both"),
        (["--monitor", "m", "--archive", "a", "--watch", "q.tql"], "queries (q.tql) or monitors, not both"),
        (["--monitor", "m", "--archive", "a", "--late-to", "late"], "not for monitors"),
        (["--monitor", "m", "--archive", "a", "--watermark", "soon"], "'soon' is not a delay"),
        (["--monitor", "m", "--archive", "a", "--time-error", "1s"], "monitors need precise times"),
        (["--monitor", "m", "--archive", "a", "--master", "sc://host:1"], "do not run through Spark Connect"),
    ],
)
def test_monitors_that_cannot_be_watched(trendloom: Command, folder: Path, words: list[str], message: str) -> None:
    (folder / "days").mkdir()
    (folder / "days" / "1.csv").write_text("time,type\n1,A\n")
    refused(trendloom("stream", "--source", "days", "--checkpoint", "state", *words), BAD_OPTIONS, message)


def test_a_monitor_that_the_archive_does_not_have(trendloom: Command, folder: Path) -> None:
    (folder / "days").mkdir()
    (folder / "days" / "1.csv").write_text("time,type\n1,A\n")
    words = ("stream", "--source", "days", "--checkpoint", "state", "--monitor", "m", "--archive", "kept")
    refused(trendloom(*words), BAD_DATA, "there is no archive kept")
    create_archive(folder / "kept", axis=TimeAxis.integer("s"))
    refused(trendloom(*words), BAD_OPTIONS, "has no monitor 'm'")


# ---------------------------------------------------------------------------------------------------- archives


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--archive-keep", "1d"], "give --archive FOLDER"),
        (["--archive", "s3://bucket/a"], "mount it"),
        (["--archive", "days"], "days is there, and is not an archive"),
        (["--archive", "new", "--sink", "memory:rows"], "rows in memory are not archived"),
        (["--archive", "new", "--archive-chunk", "soon"], "--archive-chunk 1h"),
        (["--archive", "new", "--master", "sc://host"], "Spark Connect"),
    ],
)
def test_an_archive_that_cannot_be(stream: Command, words: list[str], message: str, folder: Path) -> None:
    sink = {} if "--sink" in words else {"sink": "parquet:rows"}
    refused(stream(*words, **sink), BAD_OPTIONS, message)
    assert not (folder / "new").exists()


def test_a_query_without_a_time_cannot_be_archived(stream: Command, folder: Path) -> None:
    text = "RETURN COUNT(a[]) AS n PATTERN A+ a[] WITHIN 5"
    refused(stream("--archive", "new", sink="parquet:rows", text=text), BAD_OPTIONS, "add a time to RETURN")
    assert not (folder / "new").exists()
