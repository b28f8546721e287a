"""An archive is what its commits list: after a crash, after a commit done twice, while it is compacted, and damaged."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.archive.samples import QUERY, archive_of_seconds, events, rows

from trendloom.archive import (
    Archive,
    compact,
    create_archive,
    drop_older,
    keep_to_retention,
    open_archive,
    save_query,
    upkeep,
    write_events,
    write_results,
    writing,
)
from trendloom.archive.commits import read_log, stream_commit
from trendloom.archive.writing import commit_files, writer_of
from trendloom.errors import ArchiveWarning, DataError, OptionError


def loads(archive: Archive) -> list[int]:
    found: list[int] = archive.events("Load")["time"].to_pylist()
    return found


def data_files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet")}


def write_batch(root: Path, batch: int, table: pa.Table, stream: str = "s") -> bool:
    name = stream_commit(stream, batch)
    return commit_files(root, name, writer_of(root, name).events(table), stream=stream, batch=batch)


# ------------------------------------------------------------------------------------------------------- crashes


def test_files_without_a_commit_do_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_commit", crash)
        with pytest.raises(KeyboardInterrupt):
            write_events(root, "second", events(10, 20))
    before = data_files(root)
    assert loads(open_archive(root)) == [0, 2, 4, 6, 8]
    write_events(root, "second", events(10, 20))
    assert loads(open_archive(root)) == [*range(0, 20, 2)]
    assert len(data_files(root)) == len(before)  # what the first attempt left is gone


def test_a_commit_that_is_done_again_replaces_itself(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 20)
    reader = open_archive(root)
    write_events(root, "first", events(10, 30))
    assert loads(open_archive(root)) == [*range(10, 30, 2)]
    assert data_files(root) == {file.path for file in open_archive(root).files}
    assert loads(reader) == [*range(10, 30, 2)]  # its files are gone, so it looks again


def test_a_commit_appears_whole(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)
    (root / "commits" / ".half.part").write_text('{"name": ')
    (root / "commits" / ".half.json").write_text('{"name": ')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loads(open_archive(root)) == [0, 2, 4, 6, 8]


# ---------------------------------------------------------------------------------------------------- compaction


def test_compaction_changes_no_answer(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=50)
    for number in range(12):
        write_events(root, f"e{number}", events(number * 10, number * 10 + 10))
        write_results(
            root,
            f"r{number}",
            QUERY,
            rows([number], [f"n{number % 2}"]),
            pa.table({"node": [f"n{number % 2}"], "rack": ["r"]}),
        )
    before = open_archive(root)
    answers = [before.events("Load"), before.results("load"), before.partitions("load"), before.types()]
    assert compact(root) == len(before.files) - 8  # two types in three chunks, rows, partitions
    after = open_archive(root)
    assert [after.events("Load"), after.results("load"), after.partitions("load"), after.types()] == answers
    assert data_files(root) == {file.path for file in after.files}
    assert compact(root) == 0
    assert before.events("Load").equals(answers[0])  # opened before, and its files are gone


def test_compaction_leaves_chunks_that_still_grow(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=10)
    for start in (0, 5, 10, 15):
        write_events(root, f"e{start}", events(start, start + 5))
    compact(root, before=10)
    by_chunk = [file.chunk for file in open_archive(root).files if file.of == "Load"]
    assert sorted(chunk for chunk in by_chunk if chunk is not None) == [0, 1, 1]


def test_tiers_rewrite_an_event_a_few_times_only(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=10_000)
    written = 0
    for batch in range(76):
        written += 4
        write_batch(root, batch, events(batch * 4, batch * 4 + 4))
        if batch % 9 == 8:
            before = {file.path for file in open_archive(root).files}
            compact(root, tiered=True)
            written += sum(file.rows for file in open_archive(root).files if file.path not in before)
    archive = open_archive(root)
    assert loads(archive) == [*range(0, 304, 2)]
    assert len(archive.files) < 2 * 8 * 3
    assert written < 304 * 4


def test_the_last_batch_of_a_stream_is_left_for_it_to_be_done_again(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=1000)
    for batch in range(4):
        assert write_batch(root, batch, events(batch * 10, batch * 10 + 10))
    compact(root)
    assert write_batch(root, 3, events(30, 40))  # done again
    assert loads(open_archive(root)) == [*range(0, 40, 2)]
    assert not write_batch(root, 1, events(10, 20))  # long done: it is in the archive, together with others
    assert loads(open_archive(root)) == [*range(0, 40, 2)]
    assert write_batch(root, 0, events(40, 50), stream="another")
    compact(root)
    assert not write_batch(root, 2, events(20, 30))  # known after several compactions
    assert loads(open_archive(root)) == [*range(0, 50, 2)]
    assert data_files(root) == {file.path for file in open_archive(root).files}


def test_a_name_that_was_compacted_cannot_be_used_for_other_events(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)
    write_events(root, "second", events(10, 20))
    assert compact(root) == 0  # nothing to put together, so nothing is taken over
    write_events(root, "third", events(0, 10))
    assert compact(root) == 2
    with pytest.raises(OptionError, match="commit 'first' is in the archive already"):
        write_events(root, "first", events(50, 60))
    assert loads(open_archive(root)) == sorted([*range(0, 20, 2), *range(0, 10, 2)])


@pytest.mark.parametrize(
    "where", ["before the commit", "before old commits are deleted", "before old files are deleted"]
)
def test_a_crash_in_compaction_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=1000)
    for start in (0, 10, 20):
        write_events(root, f"e{start}", events(start, start + 10))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "before the commit":
            patch.setattr(upkeep, "write_commit", crash)
        elif where == "before old commits are deleted":
            patch.setattr(upkeep, "_clear", crash)
        else:
            patch.setattr(upkeep, "_remove_empty", crash)
        with pytest.raises(KeyboardInterrupt):
            compact(root)
    assert loads(open_archive(root)) == [*range(0, 30, 2)]
    compact(root)
    assert loads(open_archive(root)) == [*range(0, 30, 2)]
    if where != "before old files are deleted":
        assert data_files(root) == {file.path for file in open_archive(root).files}


def test_readers_and_writers_meanwhile(tmp_path: Path) -> None:
    """One reads, one writes, one compacts: whoever reads sees every commit that was there when it opened, whole."""
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=1000)
    done, problems = Event(), []

    def keep_small() -> None:
        while not done.is_set():
            compact(root, tiered=False)

    def read() -> None:
        while not done.is_set():
            archive = open_archive(root)
            count = sum(one.rows for one in archive.types().values())
            found = sum(archive.events(name).num_rows for name in archive.types())
            if found < count or count % 10:
                problems.append((count, found))

    helpers = [Thread(target=keep_small), Thread(target=read)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for helper in helpers:
            helper.start()
        for batch in range(30):
            write_batch(root, batch, events(batch * 10, batch * 10 + 10))
        done.set()
        for helper in helpers:
            helper.join()
    assert problems == []
    assert loads(open_archive(root)) == [*range(0, 300, 2)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["write", "again", "compact", "tiers", "stale"]), max_size=25))
def test_whatever_is_done_in_whatever_order(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    root = tmp_path_factory.mktemp("archive") / "a"
    create_archive(root, unit="s", chunk=25)
    batch = -1
    for step in steps:
        if step == "write" or batch < 0:
            batch += 1
            write_batch(root, batch, events(batch * 10, batch * 10 + 10))
        elif step == "again":
            write_batch(root, batch, events(batch * 10, batch * 10 + 10))
        elif step == "stale":
            write_batch(root, max(batch - 1, 0), events(max(batch - 1, 0) * 10, max(batch - 1, 0) * 10 + 10))
        else:
            compact(root, tiered=step == "tiers")
        assert loads(open_archive(root)) == [*range(0, batch * 10 + 10, 2)]
    assert data_files(root) == {file.path for file in open_archive(root).files}


# ----------------------------------------------------------------------------------------------------- retention


def test_what_is_older_is_dropped_chunk_by_chunk(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 100)
    write_results(root, "r", QUERY, rows([5, 95], ["n1", "n2"]))
    assert drop_older(root, 35) == 7  # chunks 0, 1 and 2 of both types, and a chunk of rows
    archive = open_archive(root)
    assert (archive.span, archive.results("load")["at"].to_pylist()) == ((30, 99), [95])
    assert data_files(root) == {file.path for file in archive.files}
    assert drop_older(root, 35) == 0
    drop_older(root, 10**9)
    assert read_log(root).files == ()


def test_retention_counts_from_the_newest_event(tmp_path: Path) -> None:
    root = tmp_path / "a"
    create_archive(root, unit="s", chunk=10, retention="30 s")
    write_events(root, "first", events(0, 100))
    assert keep_to_retention(root) == 13
    assert open_archive(root).span == (61, 99)  # 69 is young enough, and its chunk has 61
    assert keep_to_retention(root) == 0


# ------------------------------------------------------------------------------------------------------- damage


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[20] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def remove(path: Path) -> None:
    path.unlink()


def opened_and_read(root: Path) -> tuple[Archive, list[int]]:
    archive = open_archive(root)
    return archive, loads(archive)


@pytest.mark.parametrize("damage", [flip, cut, remove])
def test_a_damaged_file_is_named_and_left_out(tmp_path: Path, damage: object) -> None:
    root = archive_of_seconds(tmp_path / "a", 30)
    victim = next(file for file in open_archive(root).files if file.of == "Load" and file.chunk == 1)
    assert callable(damage)
    damage(root / victim.path)
    there = data_files(root)
    with pytest.warns(ArchiveWarning, match=r"chunk=1.* is damaged and left out"):
        archive, found = opened_and_read(root)
    assert found == [0, 2, 4, 6, 8, *range(20, 30, 2)]
    assert list(archive.damaged) == [victim.path]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(loads(archive)) == 10  # said once
    write_events(root, "second", events(0, 30))
    with nullcontext() if damage is flip else pytest.warns(ArchiveWarning):  # only who reads it finds a flipped bit
        compact(root)
    assert there - data_files(root) <= {path for path in there if "chunk=1" not in path or "Task" in path}
    if damage is not remove:
        assert (root / victim.path).exists()


def test_damaged_commits_queries_and_monitors_are_named(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)
    write_events(root, "second", events(10, 20))
    save_query(root, QUERY)
    (root / "commits" / "second.json").write_text("{")
    (root / "queries" / "load.json").write_text("[1]")
    (root / "monitors").mkdir()
    (root / "monitors" / "m.json").write_text("[]")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        archive, found = opened_and_read(root)
        assert (found, archive.queries(), archive.monitors()) == ([0, 2, 4, 6, 8], {}, {})
    names = ("commits/second.json", "queries/load.json", "monitors/m.json")
    assert all(name in str(one.message) for name, one in zip(names, told, strict=True))
    assert list(archive.damaged) == list(names)


def test_a_commit_cannot_point_outside_of_its_archive(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)
    path = root / "commits" / "first.json"
    path.write_text(path.read_text().replace("events/first", "../elsewhere"))
    with pytest.warns(ArchiveWarning, match="first.json"):
        assert open_archive(root).files == ()


def test_columns_are_known_without_the_notes_of_them(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)
    for path in (root / "schemas").iterdir():
        path.unlink()
    assert open_archive(root).types()["Load"].columns == {"node": pa.string(), "idle": pa.float64()}


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    root = archive_of_seconds(tmp_path / "a", 10)
    (root / "archive.json").write_text('{"format": 1}')
    with pytest.raises(DataError, match=r"archive\.json cannot be read"):
        open_archive(root)
    (root / "archive.json").write_text('{"format": 2}')
    with pytest.raises(DataError, match="archive of another version"):
        open_archive(root)
