"""A diagnosis from the archive to the reason, on runs whose reason is known: low memory, and not the growing uptime."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.engines.archived_runs import (
    ABNORMAL,
    FIRST,
    LENGTH,
    REFERENCE,
    archive_of_runs,
    begin_of,
    events_of_runs,
    in_dates,
)

import trendloom as tl
from trendloom.archive import Archive
from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.diagnosis.features import Feature
from trendloom.errors import RunError

LOW_MEMORY = Feature("Memory", "free", "mean", None, 30)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archive_of_runs(tmp_path_factory.mktemp("runs") / "archive")


@pytest.fixture(scope="module")
def found(archive: Archive) -> Diagnosis:
    return tl.diagnose(archive, query="moved", partition={"job": "j3"}, abnormal=[ABNORMAL])


def candidates(found: Diagnosis) -> dict[Feature, str]:
    return {one.feature: one.why for one in found.candidates}


def test_the_reason_is_low_memory(found: Diagnosis) -> None:
    assert [one.feature for one in found.kept] == [LOW_MEMORY]
    (bound,) = (predicate.bound for clause in found.formula.clauses for predicate in clause)
    assert 30 < bound < 98
    assert "free memory" in found.sentence


def test_what_grows_in_every_run_is_a_false_positive(found: Diagnosis) -> None:
    assert "false positive" in candidates(found)[Feature("Uptime", "seconds", "mean", None, 30)]
    assert found.related is not None
    assert found.related >= 6


def test_the_annotated_series_is_not_among_the_features(found: Diagnosis, archive: Archive) -> None:
    """Steps of j3 are what was marked. Nobody else makes any at that time, so nothing is known of their sizes."""
    sizes = [feature for feature in candidates(found) if (feature.type, feature.attribute) == ("Step", "size")]
    assert sizes == []
    assert Feature("Step", None, "count", None, 30) in candidates(found)
    assert not any(feature.category == ("job", "j3") for feature in candidates(found))


def test_values_of_other_partitions_at_the_same_time_are_features(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Somebody else's steps are no part of the annotated series: here they are what happened."""
    events = events_of_runs()
    other = pa.Table.from_pylist(
        [
            {"type": "Step", "time": time, "job": "other", "program": "join", "size": size}
            for span, size in ((REFERENCE, 7), (ABNORMAL, 900))
            for time in range(*span, 5)
        ],
        events.schema,
    )
    archive = archive_of_runs(tmp_path_factory.mktemp("two") / "archive", pa.concat_tables([events, other]))
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=ABNORMAL, reference=REFERENCE, related_by=[])
    rewards = {one.feature: one.reward for one in found.candidates}
    assert rewards[Feature("Step", "size", "max", None, 30)] == 1
    assert rewards[Feature("Step", "size", "min", None, 30)] == 1  # that of j3 would have been less


def test_queries_that_count_leave_the_counts_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    query = "QUERY steps: RETURN job, COUNT(*) AS steps PATTERN Step s WHERE [job] GROUP BY job WITHIN 30"
    archive = archive_of_runs(tmp_path_factory.mktemp("counts") / "archive", query=query)
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL])
    assert Feature("Step", None, "count", None, 30) not in candidates(found)
    assert Feature("Memory", None, "count", None, 30) in candidates(found)


def test_the_rest_of_the_partition_is_the_reference(found: Diagnosis) -> None:
    (marked,) = [one for one in found.periods if one.annotated and not one.abnormal]
    assert (marked.low, marked.high) == (ABNORMAL[1], begin_of(4) + 1)  # rows are at the ends of their windows


def test_a_reference_in_another_partition(archive: Archive) -> None:
    reference = ({"job": "j2"}, begin_of(2), begin_of(2) + 240)
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], reference=[reference])
    assert [one.feature for one in found.kept] == [LOW_MEMORY]
    (marked,) = [one for one in found.periods if one.annotated and not one.abnormal]
    assert marked.partition == (("job", "j2"),)


def test_without_related_partitions_it_is_said_so(archive: Archive) -> None:
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], related_by=[])
    assert found.related is None
    assert [note for note in found.notes if "false positives were not looked for" in note] == [found.notes[0]]
    assert not any("false positive" in why for why in candidates(found).values())


def test_several_windows_at_once(archive: Archive) -> None:
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], windows=["30 s", "1 min"])
    assert {one.feature.window for one in found.candidates} == {30, 60}
    assert {(one.feature.type, one.feature.attribute) for one in found.kept} == {("Memory", "free")}


def test_only_functions_that_are_asked_for(archive: Archive) -> None:
    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], functions="min, max")
    assert {one.feature.function for one in found.candidates} == {"min", "max"}


def test_functions_of_the_user_are_features(archive: Archive) -> None:
    def range_(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)

    found = tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], features={"range": range_})
    assert Feature("Memory", "free", "range", None, 30) in candidates(found)


def test_a_function_of_the_user_that_fails_is_named(archive: Archive) -> None:
    def broken(values: object, starts: object, ends: object) -> object:
        raise ZeroDivisionError("no idea")

    with pytest.raises(RunError, match=r"feature function 'broken' failed on .*ZeroDivisionError: no idea"):
        tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], features={"broken": broken})


def test_progress_is_told_and_never_goes_back(archive: Archive) -> None:
    heard: list[tuple[str, float]] = []
    tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], progress=lambda *told: heard.append(told))
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert any("features of Memory" in what for what, _ in heard)


def test_timestamps_give_the_same_reason(tmp_path_factory: pytest.TempPathFactory) -> None:
    query = "QUERY moved: RETURN job, SUM(s.size) AS moved PATTERN Step s WHERE [job] GROUP BY job WITHIN 30 s"
    archive = archive_of_runs(
        tmp_path_factory.mktemp("dates") / "archive", in_dates(events_of_runs()), query, chunk="1h"
    )
    found = tl.diagnose(
        archive, partition={"job": "j3"}, abnormal=("1970-01-01 02:10:00", "1970-01-01 02:14:00"), time_zone="+01:00"
    )
    assert [one.feature.name for one in found.kept] == ["Memory.free mean over 30 s"]
    assert found.periods[0].low == ABNORMAL[0] * 1_000_000


def test_only_chunks_and_columns_of_the_periods_are_read(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, int, tuple[str, ...]]] = []
    read = Archive.events

    def counting(self: Archive, type_: str, low: int, high: int, columns: list[str]) -> pa.Table:
        asked.append((type_, low, high, tuple(columns)))
        return read(self, type_, low, high, columns)

    monkeypatch.setattr(Archive, "events", counting)
    reference = (REFERENCE[0], REFERENCE[0] + 120)
    tl.diagnose(archive, partition={"job": "j3"}, abnormal=[ABNORMAL], reference=[reference], related_by=[])
    assert {(low, high) for _, low, high, _ in asked} == {(ABNORMAL[0], REFERENCE[0] + 120)}
    assert {type_: columns for type_, *_, columns in asked}["Memory"] == ("node", "free")


def test_partitions_that_stay_are_categories(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sensors that report all the time can be told apart; runs that come and go cannot (their names are no reason)."""
    rows = []
    for time in range(0, 1200, 5):
        sick = 300 <= time < 600
        values = {"a": 9.0 if sick else 1.0, "b": 70.0 + time % 7 if sick else 5.0 + time % 7, "c": 3.0 + time % 5}
        rows += [{"type": "Sensor", "time": time, "sensor": name, "value": value} for name, value in values.items()]
    query = "QUERY means: RETURN sensor, AVG(s.value) AS mean PATTERN Sensor s WHERE [sensor] GROUP BY sensor WITHIN 30"
    archive = archive_of_runs(tmp_path_factory.mktemp("sensors") / "archive", pa.Table.from_pylist(rows), query)
    found = tl.diagnose(archive, partition={"sensor": "a"}, abnormal=(300, 600))
    of_b = Feature("Sensor", "value", "mean", ("sensor", "b"), 30)
    assert {one.feature: one.reward for one in found.candidates}[of_b] == 1
    assert not any(one.feature.category == ("sensor", "a") and one.feature.attribute for one in found.candidates)


def test_a_damaged_chunk_is_left_out_with_a_warning(tmp_path_factory: pytest.TempPathFactory) -> None:
    archive = archive_of_runs(tmp_path_factory.mktemp("damaged") / "archive")
    file = next(one for one in archive.files if one.of == "Load" and one.overlaps(*ABNORMAL))
    content = bytearray((archive.root / file.path).read_bytes())
    content[len(content) // 2 :] = b"\x00" * (len(content) - len(content) // 2)
    (archive.root / file.path).write_bytes(content)
    with pytest.warns(UserWarning, match="damaged and left out"):
        found = tl.diagnose(archive.root, partition={"job": "j3"}, abnormal=[ABNORMAL])
    assert [one.feature for one in found.kept] == [LOW_MEMORY]
    assert (archive.root / file.path).exists()


def test_events_of_all_runs_are_there() -> None:
    """The data say what the tests say of them."""
    events = events_of_runs()
    low = events.filter(pc.and_(pc.equal(events["type"], "Memory"), pc.less(events["free"], 50)))["time"].to_pylist()
    assert min(low) == ABNORMAL[0]
    assert max(low) < begin_of(5) + 240
    assert max(events["time"].to_pylist()) < FIRST + 6 * LENGTH
