"""A commit has one writer at a time: the second is refused, and no events are lost. A dead writer stops nobody."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.archive.samples import archive_of_seconds, events

from trendloom.archive import create_archive, open_archive, upkeep, write_events
from trendloom.archive.commits import Commit, sole_writer, write_commit
from trendloom.archive.requests import ArchiveRequest
from trendloom.engines.local.archive import archive_locally
from trendloom.errors import OptionError, RunError
from trendloom.options import Options

HOLD = """
import sys
from pathlib import Path
from trendloom.archive.commits import sole_writer
with sole_writer(Path(sys.argv[1]), [sys.argv[2]]):
    print("held", flush=True)
    sys.stdin.read()
"""

WRITE = """
import sys
import pyarrow as pa
from trendloom.errors import RunError
from trendloom.archive import write_events
table = pa.table({"time": range(30_000), "type": ["Load"] * 30_000})
print("ready", flush=True)
sys.stdin.readline()
try:
    write_events(sys.argv[1], "day", table)
except RunError as refused:
    print(refused.message)
"""


def started(script: str, *words: str) -> subprocess.Popen[str]:
    """A process that has said its first word."""
    command = [sys.executable, "-c", script, *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    return process


def test_the_second_writer_is_refused_until_the_first_has_ended_or_died(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "plant", 20)
    first = started(HOLD, str(root), "first")
    with pytest.raises(RunError, match=f"commit 'first' is being written .* by process {first.pid}"):
        write_events(root, "first", events(0, 10))
    write_events(root, "second", events(20, 30))
    first.kill()
    first.communicate()
    write_events(root, "first", events(0, 10))
    assert sum(one.rows for one in open_archive(root).types().values()) == 20
    assert not list(root.glob(".*.lock"))


def test_processes_that_write_one_commit_at_once_lose_nothing(tmp_path: Path) -> None:
    create_archive(tmp_path, unit="s", chunk=1000)
    writers = [started(WRITE, str(tmp_path)) for _ in range(2)]
    for one in writers:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate()[0] for one in writers]
    assert all(one.returncode == 0 for one in writers)
    assert all(not words or "is being written" in words for words in said)
    assert not all(said)
    assert open_archive(tmp_path).types()["Load"].rows == 30_000


def test_archiving_is_refused_while_the_same_name_is_archived(tmp_path: Path) -> None:
    request = ArchiveRequest(tmp_path, "RETURN COUNT(*) AS n PATTERN Load WITHIN 10 s", "day", "loads", "1 min")
    source = events(0, 20).drop_columns(["nothing"])
    archived = archive_locally(request, source, Options(time_unit="s"))
    for name in ("day-events", "day-query-loads"):
        with sole_writer(tmp_path, [name]), pytest.raises(RunError, match=f"commit '{name}' is being written"):
            archive_locally(request, source, Options(time_unit="s"))
    assert archive_locally(request, source, Options(time_unit="s")).rows == archived.rows == {"loads": 2}


def test_a_commit_waits_while_another_takes_over_what_it_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written between reading and writing, it would be taken over without its new files."""
    root = archive_of_seconds(tmp_path, 20)
    write_events(root, "second", events(10, 30))

    def write_first() -> None:
        with pytest.raises(OptionError, match="compacted together with others"):
            write_events(root, "first", events(0, 10))

    again = threading.Thread(target=write_first)

    def meanwhile(root: Path, commit: Commit) -> None:
        again.start()
        again.join(0.3)
        assert again.is_alive()
        write_commit(root, commit)

    monkeypatch.setattr(upkeep, "write_commit", meanwhile)
    upkeep.compact(root)
    again.join()
    assert sum(one.rows for one in open_archive(root).types().values()) == 40
