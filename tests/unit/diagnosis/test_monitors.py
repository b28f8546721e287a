"""Monitors over an archive: what they find, how they are graded, how they are kept, and the same as a query."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.engines.archived_runs import ABNORMAL, FIRST, SICK, archive_of_runs, begin_of, events_of_runs

import trendloom as tl
from trendloom.archive import Archive, open_archive, save_monitor
from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.formula import Formula, Operator, Predicate
from trendloom.diagnosis.monitors import Grade, Monitor, find_monitor, query_of, run_monitor
from trendloom.engines.diagnose import save_diagnosis
from trendloom.errors import DataError, OptionError
from trendloom.model.time import TimeAxis

SECONDS = TimeAxis.integer("s")


def feature(name: str, function: str, category: tuple[str, str] | None = None, window: int = 30) -> Feature:
    kind, _, attribute = name.partition(".")
    return Feature(kind, attribute or None, function, category, window, f"{window} s")


def formula(*clauses: list[tuple[Feature, Operator, float]]) -> Formula:
    return Formula(tuple(tuple(Predicate(*one) for one in clause) for clause in clauses))


def monitor(*clauses: list[tuple[Feature, Operator, float]], name: str = "watch") -> Monitor:
    return Monitor(name, formula(*clauses), "", Grade(0, 0, 0), {})


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archive_of_runs(tmp_path_factory.mktemp("watched") / "archive")


def starts(alerts: pa.Table) -> list[int]:
    return [int(one) for one in alerts["window_start"].to_pylist()]


FREE = feature("Memory.free", "mean")
SICK_WINDOWS = [start for run in SICK for start in range(begin_of(int(run[1:])), begin_of(int(run[1:])) + 240, 30)]


def test_a_monitor_finds_every_run_that_is_like_the_reason(archive: Archive) -> None:
    found = run_monitor(archive, monitor([(FREE, "<=", 50.0)]))
    assert starts(found) == SICK_WINDOWS
    assert found.column_names == ["monitor", "window_start", "window_end", "Memory.free mean over 30 s"]
    assert max(found["Memory.free mean over 30 s"].to_pylist()) < 50


def test_a_stretch_of_the_archive_only(archive: Archive) -> None:
    low, high = ABNORMAL[0] + 60, ABNORMAL[0] + 120
    assert starts(run_monitor(archive, monitor([(FREE, "<=", 50.0)]), low, high)) == [low, low + 30]


@pytest.mark.parametrize("function", ["count", "mean", "min", "max", "deviation", "change"])
def test_every_function_has_the_numbers_of_the_feature_space(archive: Archive, function: str) -> None:
    one = feature("Memory.free", function) if function != "count" else feature("Memory", "count")
    diagnosis = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], related_by=[])
    assert one in [each.feature for each in diagnosis.candidates]
    found = run_monitor(archive, monitor([(one, ">=", -1e9)]), *ABNORMAL)
    again = tl.run(
        "RETURN COUNT(*), AVG(e.free), MIN(e.free), MAX(e.free) PATTERN Memory e WITHIN 30", archive.stream(*ABNORMAL)
    )
    column = {"count": "COUNT(*)", "mean": "AVG(e.free)", "min": "MIN(e.free)", "max": "MAX(e.free)"}.get(function)
    if column is not None:
        assert found[one.name].to_pylist() == pytest.approx([float(x) for x in again[column].to_pylist()])
    else:
        assert len(found) == 8


def test_categories_are_told_apart(archive: Archive) -> None:
    of_n1, of_n9 = (feature("Memory", "count", ("node", name)) for name in ("n1", "n9"))
    assert set(run_monitor(archive, monitor([(of_n1, "=", 3.0)]))[of_n1.name].to_pylist()) == {3.0}
    none = run_monitor(archive, monitor([(of_n9, "=", 0.0)]))
    assert len(none) == 120  # there never was such a node: 0 events in every window


def test_types_and_columns_that_the_archive_lacks_are_not_there(archive: Archive) -> None:
    gone, missing = feature("Ghost", "count"), feature("Memory.swap", "mean")
    assert len(run_monitor(archive, monitor([(gone, "<=", 0.0)]))) == 120
    assert len(run_monitor(archive, monitor([(missing, "<=", 1e9)]))) == 0


def test_what_stops_is_found_unless_everything_stops(tmp_path: Path) -> None:
    """Nobody can tell a stretch in which nothing at all happened from one still to come."""
    events = events_of_runs(2)
    time, kind = events["time"].to_pylist(), events["type"].to_pylist()
    kept = [
        not (FIRST + 90 <= at < FIRST + 120) and (one != "Load" or not FIRST + 300 <= at < FIRST + 360)
        for at, one in zip(time, kind, strict=True)
    ]
    archive = archive_of_runs(tmp_path / "archive", events.filter(pa.array(kept)))
    silent = monitor([(feature("Load", "count"), "<=", 0.0)])
    assert starts(run_monitor(archive, silent)) == [FIRST + 300, FIRST + 330]


def test_windows_of_several_sizes(archive: Archive) -> None:
    """The longer window is the one that holds the shorter; alerts are of the shorter ones."""
    minute = feature("Memory.free", "max", None, 60)
    found = run_monitor(archive, monitor([(FREE, "<=", 50.0)], [(minute, "<=", 60.0)]))
    assert starts(found) == SICK_WINDOWS
    assert len(found[minute.name].drop_null()) == len(found)


# ----------------------------------------------------------------------------------------- kept and graded


def test_a_reason_is_kept_with_its_precision_and_recall(tmp_path: Path) -> None:
    archive = archive_of_runs(tmp_path / "archive")
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], save_as="memory low/1")
    kept = find_monitor(open_archive(archive.root), "memory low/1")
    assert kept.formula == found.formula
    assert kept.grade.precision == 1
    assert kept.grade.recall == 1
    assert kept.grade.abnormal >= 8
    assert kept.made_of["query"] == "moved"
    assert any("kept as monitor 'memory low/1': precision 1.00" in note for note in found.notes)
    assert starts(run_monitor(archive, kept)) == SICK_WINDOWS
    assert json.loads(json.dumps(kept.to_json()))["windows"] == [30]


def test_the_grade_counts_alerts_in_normal_windows(tmp_path: Path) -> None:
    """A reason that holds of half the reference as well: all abnormal windows are found, and others, too."""
    archive = archive_of_runs(tmp_path / "archive")
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], related_by=[])
    uptime = feature("Uptime.seconds", "max")
    poor = replace(found, formula=formula([(uptime, "<", 420.0)]))
    grade = save_diagnosis(archive, poor, "poor").grade
    assert (grade.abnormal, grade.right) == (8, 8)
    assert grade.alerts == 14
    assert grade.precision == pytest.approx(8 / 14)


def test_without_a_reason_there_is_no_monitor(archive: Archive, tmp_path: Path) -> None:
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL])
    with pytest.raises(OptionError, match="no reason to keep"):
        save_diagnosis(archive, replace(found, formula=Formula(())), "nothing")


def test_monitors_that_are_not_there_or_broken(tmp_path: Path) -> None:
    archive = archive_of_runs(tmp_path / "archive")
    with pytest.raises(OptionError, match="has no monitor 'x'") as told:
        find_monitor(archive, "x")
    assert "it has none yet" in str(told.value)
    save_monitor(archive.root, "broken", {"formula": [[{"feature": {}}]]})
    with pytest.raises(DataError, match=r"monitor 'broken' of .* cannot be read"):
        find_monitor(archive, "broken")
    with pytest.raises(OptionError, match="no monitor 'brokn'") as told:
        find_monitor(archive, "brokn")
    assert "did you mean 'broken'?" in str(told.value)


# -------------------------------------------------------------------------------------- the same as a query


@pytest.mark.parametrize(
    "clauses",
    [
        ([(FREE, "<=", 50.25)],),
        ([(FREE, "<=", 50.0)], [(feature("Memory", "count"), ">", 5.0)]),
        ([(feature("Memory.free", "min"), "<", 19.5), (feature("Memory.free", "max"), ">=", 106.0)],),
        ([(feature("Memory.free", "mean", ("node", "n1")), "<=", 50.0)],),
        ([(feature("Memory.free", "mean", None, 60), ">", 99.0)], [(feature("Memory", "count", None, 60), "=", 12.0)]),
    ],
)
def test_the_query_gives_the_windows_of_the_monitor(archive: Archive, clauses: tuple) -> None:
    watched = monitor(*clauses, name="same thing")
    alerts = run_monitor(archive, watched)
    text = watched.query(archive.axis)
    assert text is not None
    rows = tl.run(text, archive.stream())
    assert len(alerts) > 0
    assert [int(one) for one in rows["window_start"].to_pylist()] == starts(alerts)
    for one, column in zip(watched.formula.features, rows.column_names[-len(watched.formula.features) :], strict=True):
        assert [float(x) for x in rows[column].to_pylist()] == pytest.approx(alerts[one.name].to_pylist())


@pytest.mark.parametrize(
    "clauses",
    [
        ([(feature("Memory.free", "deviation"), "<=", 1.0)],),
        ([(feature("Memory.free", "change"), "<=", 1.0)],),
        ([(FREE, "<=", 1.0)], [(feature("Load.one", "mean"), "<=", 1.0)]),
        ([(FREE, "<=", 1.0)], [(feature("Memory.free", "mean", None, 60), "<=", 1.0)]),
        ([(feature("Memory", "count"), "<=", 3.0)],),  # windows without any event have no row
        ([(feature("Memory.free", "count"), ">=", 3.0)],),
    ],
)
def test_what_the_language_cannot_say_stays_a_monitor(clauses: tuple) -> None:
    assert query_of(formula(*clauses), "name", SECONDS) is None


def test_names_and_numbers_are_written_as_the_language_reads_them() -> None:
    odd = feature("Free Memory.per cent", "mean", ("no`de", "it's"))
    text = query_of(formula([(odd, "<=", 1.9e-7)]), "low memory", SECONDS)
    assert text is not None
    assert "QUERY `low memory`:" in text
    assert "PATTERN `Free Memory` e" in text
    assert "WHERE e.`no``de` = 'it''s'" in text
    assert "<= 0.00000019" in text
    assert tl.check(text) == []
