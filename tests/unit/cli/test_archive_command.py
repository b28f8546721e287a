"""`trendloom archive` in one process: what goes in, what it shows, and every way to ask for it wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from trendloom.archive import open_archive, save_monitor

Command = Callable[..., Result]

QUERY = (
    "RETURN user, COUNT(*) AS n, AVG(B.value) AS mean PATTERN SEQ(A, B+) WHERE [user] GROUP BY user WITHIN 4 SLIDE 4"
)


@pytest.fixture
def archive(trendloom: Command, folder: Path) -> Command:
    (folder / "load.tql").write_text(QUERY)

    def call(*words: str, engine: str = "local") -> Result:
        return trendloom("archive", "plant", *words, "--engine", engine)

    return call


def test_events_and_rows_go_in_and_are_shown(archive: Command, trendloom: Command) -> None:
    result = archive("--events", "events.csv", "--queries", "load.tql", "--chunk", "2s")
    assert result.exit_code == 0, result.stderr
    assert "note: archived in plant: 6 events, 1 rows of query load\n" in result.stderr
    shown = trendloom("archive", "plant")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0].startswith("plant: 6 events from 1 to 6, ")
    assert "id, user, value" in shown.stdout
    assert "n, mean" in shown.stdout


def test_the_same_files_again_change_nothing(archive: Command) -> None:
    for _ in range(2):
        assert archive("--events", "events.csv", "--queries", "load.tql").exit_code == 0
    assert sum(one.rows for one in open_archive("plant").types().values()) == 6
    archive("--events", "events.csv", "--commit", "more")
    assert sum(one.rows for one in open_archive("plant").types().values()) == 12
    result = archive("--compact")
    assert result.stderr == "note: 3 files fewer in plant\n"
    assert archive("--compact").stderr == "note: there are no small files in plant\n"
    assert "there already, put together with others: events" in archive("--events", "events.csv").stderr


def test_monitors_and_empty_archives_are_shown(archive: Command, trendloom: Command, folder: Path) -> None:
    (folder / "none.csv").write_text("time,type\n")
    archive("--events", "none.csv")
    save_monitor(folder / "plant", "hot", {"sentence": "heat goes up"})
    shown = trendloom("archive", "plant").stdout
    assert shown.splitlines()[0] == "plant: no events"
    assert "heat goes up" in shown


def test_damage_is_told_and_the_rest_is_shown(archive: Command, trendloom: Command, folder: Path) -> None:
    archive("--events", "events.csv")
    victim = next(file for file in open_archive("plant").files if file.of == "A")
    (folder / "plant" / victim.path).write_bytes(b"")
    shown = trendloom("archive", "plant")
    assert shown.exit_code == 0
    assert f"warning: archive plant: {victim.path} is damaged and left out: it has 0 bytes" in shown.stderr
    assert shown.stdout.startswith("plant: 4 events")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 1, "there is no archive plant: there is no such folder"),
        (["--compact"], 1, "there is no archive plant"),
        (["--queries", "load.tql"], 2, "give --events FILE"),
        (["--events", "events.csv", "--queries", "lode.tql"], 2, "did you mean 'load.tql'?"),
        (["--events", "events.csv", "--chunk", "soon"], 2, "'soon' is not a duration"),
        (["--events", "events.csv", "--keep", "-3d"], 2, "'-3d' is not a duration"),
        (["--events", "events.csv", "--dimensions", "usr"], 2, "(--dimensions names it)"),
        (["--events", "events.csv", "--time", "when"], 1, "there is no column 'when'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_made(
    archive: Command, folder: Path, words: list[str], status: int, message: str
) -> None:
    result = archive(*words)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr
    assert not (folder / "plant").exists()


def test_an_address_is_not_a_folder(trendloom: Command) -> None:
    result = trendloom("archive", "s3://bucket/plant")
    assert (result.exit_code, "mount it" in result.stderr) == (2, True)
