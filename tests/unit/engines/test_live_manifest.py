"""What a checkpoint remembers of a workload: which changes fit, and which are refused before anything is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.streaming.live_streams import streaming_query

from trendloom.engines.spark.streaming.checkpoint import NAME, shares_parcels, write_manifest
from trendloom.engines.spark.streaming.stream import StreamSettings
from trendloom.errors import OptionError, RunError, StateError
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis
from trendloom.streaming.streaming_query import StreamingQuery
from trendloom.streaming.workload_diff import news_of, shown_moment

PAIRS = "RETURN a.x PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
COUNTS = "RETURN k, COUNT(*) PATTERN SEQ(A, B) WHERE [k] GROUP BY k WITHIN 10"


def named(name: str, query: str) -> StreamingQuery:
    return replace(streaming_query(query), name=name)


def test_queries_come_and_go(tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    first = write_manifest(place, (named("p", PAIRS), named("c", COUNTS)), 8)
    assert [one.generation for one in first] == [0, 0]
    assert [one.generation for one in write_manifest(place, (named("p", PAIRS),), 8)] == [0]
    back = write_manifest(place, (named("p", PAIRS), named("c", COUNTS), named("new", COUNTS)), 8)
    assert [one.generation for one in back] == [0, 1, 0]
    assert [one.generation for one in write_manifest(place, (named("c", COUNTS),), 8)] == [1]


def commit(checkpoint: Path, batch: int, watermark: int) -> None:
    """Spark's note of a batch that is done."""
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(batch)).write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark}}}')
    (checkpoint / "commits" / f".{batch}.crc").write_bytes(b"crc")


def test_queries_that_join_later_begin_after_all_events_that_were_seen(tmp_path: Path) -> None:
    place, old = str(tmp_path), named("p", PAIRS)
    assert [one.since for one in write_manifest(place, (old, named("c", COUNTS)), 8, 10_000)] == [None, None]
    assert [one.since for one in write_manifest(place, (old, named("d", COUNTS)), 8, 10_000)] == [
        None,
        None,
    ]  # nothing is done
    commit(tmp_path, 9, 5_000)
    commit(tmp_path, 10, 20_000)
    joined = write_manifest(place, (old, named("c", COUNTS), named("new", PAIRS)), 8, 10_000)
    assert [(one.generation, one.since) for one in joined] == [(0, None), (1, 31), (0, 31)]
    commit(tmp_path, 11, 90_000)
    again = write_manifest(place, (old, named("c", COUNTS), named("new", PAIRS)), 8, 10_000)
    assert [one.since for one in again] == [None, 31, 31]
    write_manifest(place, (old,), 8, 10_000)
    assert write_manifest(place, (old, named("c", COUNTS)), 8, 10_000)[1].since == 101


def test_a_shorter_delay_does_not_forget_what_a_longer_one_let_in(tmp_path: Path) -> None:
    write_manifest(str(tmp_path), (named("p", PAIRS),), 8, 60_000)
    commit(tmp_path, 0, 40_000)
    write_manifest(str(tmp_path), (named("p", PAIRS),), 8, 5_000)
    commit(tmp_path, 1, 40_000)  # the watermark does not go back, and says little about what was seen
    assert write_manifest(str(tmp_path), (named("p", PAIRS), named("c", COUNTS)), 8, 5_000)[1].since == 101


def test_a_manifest_of_an_earlier_version_knows_no_moment(tmp_path: Path) -> None:
    write_manifest(str(tmp_path), (named("p", PAIRS),), 8)
    told = json.loads((tmp_path / NAME).read_text())
    del told["delay"], told["queries"]["p"]["since"]
    (tmp_path / NAME).write_text(json.dumps(told))
    commit(tmp_path, 0, 20_000)
    assert [one.since for one in write_manifest(str(tmp_path), (named("p", PAIRS), named("c", COUNTS)), 8, 2_000)] == [
        None,
        23,
    ]


def test_a_garbled_commit_is_told(tmp_path: Path) -> None:
    commit(tmp_path, 0, 1)
    (tmp_path / "commits" / "0").write_text("v1\n{")
    with pytest.raises(StateError, match="commits/0"):
        write_manifest(str(tmp_path), (named("p", PAIRS),), 8)


@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [("10 seconds", 10_000), ("0 seconds", 0), ("1.5 SECONDS", 1500), ("1 week", 604_800_000), ("7 microseconds", 1)],
)
def test_delays_in_milliseconds(delay: str, milliseconds: int) -> None:
    assert StreamSettings(delay, 8).delay == milliseconds


def test_news_are_told_until_answers_are_whole() -> None:
    joined = replace(named("p", PAIRS), since=31)
    assert [str(note) for note in news_of([joined, named("c", COUNTS)], None)] == [
        "query 'p' is new: its answers are whole from 31 on"
    ]
    assert len(list(news_of([joined], 30_999_999))) == 1
    assert list(news_of([joined], 31_000_000)) == []


def test_moments_are_told_in_the_zone_of_the_stream() -> None:
    columns = (Column("time", Kind.TIME, zone="Europe/Paris"), Column("type", Kind.STRING))
    schema = Schema(columns, axis=TimeAxis.timestamps())
    assert shown_moment(schema, 1_790_000_000_120_000) == "2026-09-21 16:13:20.12 Europe/Paris"
    assert shown_moment(replace(schema, columns=()), 1_790_000_000_000_000) == "2026-09-21 14:13:20 UTC"


def test_a_query_that_was_away_may_have_changed(tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    write_manifest(place, (named("p", PAIRS), named("c", COUNTS)), 8)
    write_manifest(place, (named("p", PAIRS),), 8)
    assert write_manifest(place, (named("c", PAIRS),), 8)[0].generation == 1


def test_a_changed_query_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    write_manifest(str(tmp_path), (named("p", PAIRS),), 8)
    before = (tmp_path / NAME).read_bytes()
    for changed in ("WITHIN 20", "WITHIN 10 SLIDE 5"):
        with pytest.raises(OptionError, match="query 'p' has changed") as error:
            write_manifest(str(tmp_path), (named("p", PAIRS.replace("WITHIN 10", changed)),), 8)
        assert "another name" in str(error.value.hint)
    assert (tmp_path / NAME).read_bytes() == before
    write_manifest(str(tmp_path), (named("p", PAIRS.replace("RETURN a.x", "RETURN a.x + 1 AS y")),), 8)


def test_the_number_of_buckets_belongs_to_the_checkpoint(tmp_path: Path) -> None:
    write_manifest(str(tmp_path), (named("p", PAIRS),), 8)
    with pytest.raises(OptionError, match="made with 8 buckets, not 4"):
        write_manifest(str(tmp_path), (named("p", PAIRS),), 4)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(OptionError, match="not one of Trendloom's"):
        write_manifest(str(tmp_path), (named("p", PAIRS),), 8)


def test_a_garbled_manifest_is_told(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        write_manifest(str(tmp_path), (named("p", PAIRS),), 8)


def test_queries_of_a_new_checkpoint_travel_together_and_those_of_an_old_one_as_ever(tmp_path: Path) -> None:
    new, old = str(tmp_path / "new"), tmp_path / "old"
    write_manifest(new, (named("p", PAIRS),), 8)
    assert shares_parcels(new)
    write_manifest(str(old), (named("p", PAIRS),), 8)
    told = json.loads((old / NAME).read_text())
    del told["together"]  # as earlier versions wrote it
    (old / NAME).write_text(json.dumps(told))
    for _ in range(2):
        write_manifest(str(old), (named("p", PAIRS), named("c", COUNTS)), 8)
        assert not shares_parcels(str(old))
