"""Every way to ask for a reason wrongly: refused before any event is read, with a word on what there is instead."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.engines.archived_runs import (
    ABNORMAL,
    FIRST,
    REFERENCE,
    archive_of_runs,
    begin_of,
    events_of_runs,
    in_dates,
)

import trendloom as tl
from trendloom.archive import Archive, create_archive, open_archive, write_results
from trendloom.diagnosis.annotation import annotate
from trendloom.diagnosis.request import DiagnosisRequest, marked_intervals, shown_tick, tick_of
from trendloom.errors import DataError, OptionError, TrendloomError
from trendloom.model.time import TimeAxis

LAST = begin_of(7) - 4
"""The last event of the archive."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archive_of_runs(tmp_path_factory.mktemp("asked") / "archive")


def refused(archive: Archive, wrong: dict[str, Any]) -> TrendloomError:
    """What is said of a request that is right but for this."""
    right: dict[str, Any] = {"query": "moved", "partition": {"job": "j3"}, "abnormal": [ABNORMAL]}
    with pytest.raises(TrendloomError) as told:
        tl.diagnose(archive, **(right | wrong))
    return told.value


@pytest.mark.parametrize(
    ("wrong", "message", "way_out"),
    [
        ({"query": "move"}, "has no query 'move'", "did you mean 'moved'?"),
        ({"partition": {"job": "j33"}}, "no partition job = j33", "did you mean 'j3'?"),
        ({"partition": {"job": "zebra"}}, "no partition job = zebra", "there is 'j1', 'j2'"),
        ({"partition": {"jobs": "j3"}}, "not partitioned by 'jobs'", "did you mean 'job'?"),
        ({"partition": {}}, "no job is given", "job=j1"),
        ({"related_by": "programm"}, "no dimension 'programm'", "did you mean 'program'?"),
        ({"abnormal": []}, "nothing is marked as abnormal", "abnormal= with two times"),
        ({"abnormal": [1]}, "is not an interval", "(from, to)"),
        ({"abnormal": "3000"}, "is not an interval", "(from, to)"),
        ({"abnormal": [(1, 2, 3)]}, "is not an interval", "(from, to)"),
        ({"abnormal": [({"job": "j2"}, 1, 2)]}, "is not an interval", "(from, to)"),
        ({"abnormal": [("noon", 5000)]}, "its times are whole numbers", "abnormal= 1200"),
        ({"abnormal": [(True, 5000)]}, "True is not a time", "1200"),
        ({"abnormal": [(4500, 4200)]}, "4500 to 4200 is empty", "swap the two times"),
        ({"abnormal": [(4200, 4200)]}, "4200 to 4200 is empty", "begins before it ends"),
        ({"abnormal": [(1, 2)]}, "1 to 2 lies outside the archive", f"from {FIRST} to {LAST}"),
        ({"abnormal": [(90_000, 90_100)]}, "lies outside the archive", f"from {FIRST} to {LAST}"),
        ({"abnormal": [ABNORMAL, (4300, 4400)]}, "overlap", "share no time"),
        ({"reference": [(4300, 4700)]}, "intervals 4200 to 4440 and 4300 to 4700 overlap", "share no time"),
        ({"reference": [({"job": "j2"}, 4300, 4700)]}, "overlap", "features use the events of all"),
        ({"reference": [({"job": "9"}, 3600, 3700)]}, "no partition job = 9", "there is 'j1'"),
        ({"abnormal": [(4201, 4229)]}, "holds no whole window of 30 s", "windows begin at multiples of 30 s"),
        ({"reference": [(4441, 4465)]}, "reference interval 4441 to 4465 holds no whole window", "shorter windows="),
        ({"abnormal": [(begin_of(3), begin_of(4))]}, "left of the partition job = j3", "reference="),
        ({"windows": "half a minute"}, "is not a duration", "a number and a unit"),
        ({"windows": []}, "features need a window", 'windows="30 s"'),
        ({"windows": "0 s"}, "at least 1", "longer"),
        ({"functions": "maximum"}, "no feature function 'maximum'", "did you mean 'max'?"),
        ({"features": {"mean": len}}, "'mean' is a feature function already", "another name"),
        ({"engine": "sparc"}, "no engine 'sparc'", "did you mean 'spark'?"),
        ({"save_as": " "}, "needs a name", "for example"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_there_is(
    archive: Archive, wrong: dict[str, Any], message: str, way_out: str
) -> None:
    error = refused(archive, wrong)
    assert isinstance(error, OptionError)
    assert message in error.message
    assert way_out in (error.hint or "")


def test_one_query_need_not_be_named_several_must(tmp_path: Path) -> None:
    archive = archive_of_runs(tmp_path / "archive")
    write_results(archive.root, "more", replace(archive.queries()["moved"], name="again"), archive.results("moved"))
    with pytest.raises(OptionError, match="which query") as told:
        tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL])
    assert "again, moved" in str(told.value)


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no archive"):
        tl.diagnose(tmp_path / "nothing", abnormal=[(1, 2)])


def test_an_archive_without_results(tmp_path: Path) -> None:
    archive = archive_of_runs(tmp_path / "archive", query="")
    with pytest.raises(DataError, match="holds no results of a query"):
        tl.diagnose(archive, abnormal=[(1, 2)])


def test_an_archive_without_the_events_of_its_query(archive: Archive, tmp_path: Path) -> None:
    """Rows were archived, events of other types only."""
    events = events_of_runs()
    other = archive_of_runs(tmp_path / "other", events.filter(of_type(events, "Load")), query="")
    write_results(other.root, "rows", archive.queries()["moved"], archive.results("moved"))
    with pytest.raises(DataError, match="results of 'moved', but no events of Step") as told:
        tl.diagnose(open_archive(other.root), partition={"job": "j3"}, abnormal=[ABNORMAL])
    assert "there is 'Load'" in str(told.value)


def of_type(events: Any, kind: str) -> Any:
    return pc.equal(events["type"], kind)


def test_an_archive_without_any_event(archive: Archive, tmp_path: Path) -> None:
    root = tmp_path / "rows"
    create_archive(root, axis=TimeAxis.integer("s"))
    write_results(root, "rows", archive.queries()["moved"], archive.results("moved"))
    with pytest.raises(DataError, match="has no events"):
        tl.diagnose(root, partition={"job": "j3"}, abnormal=[ABNORMAL])


def test_a_gap_in_the_archive_is_not_a_reference(tmp_path: Path) -> None:
    """An hour without any event would count 0 of everything, and look like a reason."""
    events = events_of_runs()
    later = events.set_column(1, "time", pc.add(events["time"], 100_000))
    archive = archive_of_runs(tmp_path / "archive", pa.concat_tables([events, later]))
    with pytest.raises(DataError, match="no events between 50000 and 50600") as told:
        tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], reference=[(50_000, 50_600)])
    assert "with gaps" in str(told.value)


def test_what_lies_partly_outside_is_cut_and_told(archive: Archive) -> None:
    request = DiagnosisRequest("moved", {"job": "j1"}, marked_intervals((0, FIRST + 300), "abnormal"))
    found = annotate(archive, request)
    assert (found.abnormal[0].low, found.abnormal[0].high) == (FIRST, FIRST + 300)
    assert "was cut to 3000 to 3300" in found.notes[0]


def test_values_of_partitions_may_be_text(archive: Archive, tmp_path: Path) -> None:
    """The command has nothing but text."""
    events = events_of_runs()
    number = pa.array([None if job is None else int(job[1:]) for job in events["job"].to_pylist()])
    numbered = archive_of_runs(tmp_path / "archive", events.set_column(2, "job", number))
    for value in ("3", 3):
        request = DiagnosisRequest("moved", {"job": value}, marked_intervals(ABNORMAL, "abnormal"))
        assert annotate(numbered, request).partition.key == (("job", 3),)


def test_related_partitions_agree_in_dimensions_nearest_first(archive: Archive) -> None:
    request = DiagnosisRequest("moved", {"job": "j3"}, marked_intervals(ABNORMAL, "abnormal"))
    assert [dict(one.key)["job"] for one in annotate(archive, request).related] == ["j2", "j4", "j1", "j5", "j6"]
    reference = marked_intervals([({"job": "j2"}, begin_of(2), begin_of(2) + 100)], "reference", elsewhere=True)
    elsewhere = DiagnosisRequest("moved", {"job": "j3"}, marked_intervals(ABNORMAL, "abnormal"), reference)
    assert "j2" not in [dict(one.key)["job"] for one in annotate(archive, elsewhere).related]


# --------------------------------------------------------------------------------------------------- times


def test_times_are_read_in_the_zone_that_is_named() -> None:
    dates = TimeAxis.timestamps()
    hour = 3_600_000_000
    assert tick_of("1970-01-01 02:00", dates, None, "abnormal") == 2 * hour
    assert tick_of("1970-01-01 02:00", dates, "+01:00", "abnormal") == hour
    assert tick_of("1970-01-01T02:00Z", dates, "+01:00", "abnormal") == 2 * hour
    assert tick_of("1970-01-02", dates, None, "abnormal") == 24 * hour
    assert tick_of(datetime.datetime(1970, 1, 1, 2), dates, "+01:00", "abnormal") == hour
    assert tick_of("20240131", dates, None, "abnormal") == 20_240_131  # a number is a number
    assert tick_of(-5, TimeAxis.integer("s"), None, "abnormal") == -5
    with pytest.raises(OptionError, match="'yesterday' is not a time"):
        tick_of("yesterday", dates, None, "abnormal")
    with pytest.raises(OptionError, match="no time zone 'Atlantis'"):
        tick_of("1970-01-01", dates, "Atlantis", "abnormal")


def test_times_are_shown_in_the_zone_that_is_named() -> None:
    dates = TimeAxis.timestamps()
    assert shown_tick(0, dates) == "1970-01-01 00:00:00"
    assert shown_tick(0, dates, "+01:00") == "1970-01-01 01:00:00 +01:00"
    assert shown_tick(7, TimeAxis.integer("s")) == "7"
    assert shown_tick(10**18, dates) == f"{10**18} us"


def test_errors_show_times_as_the_caller_writes_them(tmp_path: Path) -> None:
    query = "QUERY moved: RETURN job, SUM(s.size) PATTERN Step s WHERE [job] GROUP BY job WITHIN 30 s"
    archive = archive_of_runs(tmp_path / "archive", in_dates(events_of_runs()), query, chunk="1h")
    with pytest.raises(OptionError) as told:
        tl.diagnose(archive, partition={"job": "j3"}, abnormal=("2024-01-01", "2024-01-02"), time_zone="+01:00")
    assert "2024-01-01 00:00:00 +01:00 to 2024-01-02 00:00:00 +01:00 lies outside" in told.value.message
    assert "1970-01-01 01:50:00 +01:00" in str(told.value.hint)


def test_reference_is_the_other_stretch(archive: Archive) -> None:
    request = DiagnosisRequest("moved", {"job": "j3"}, marked_intervals(ABNORMAL, "abnormal"))
    found = annotate(archive, request)
    assert [(one.low, one.high) for one in found.reference] == [(REFERENCE[0], REFERENCE[1] + 1)]
