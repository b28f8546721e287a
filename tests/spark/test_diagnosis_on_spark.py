"""Features and monitors of an archive on Spark: the same numbers as in one process, whatever the archive holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.engines.archived_runs import ABNORMAL, FIRST, archive_of_runs, begin_of, events_of_runs, in_dates

import trendloom as tl
from trendloom.archive import Archive, create_archive, open_archive, write_events
from trendloom.diagnosis.archived_features import features_of_archive
from trendloom.diagnosis.feature_space import Excluded, FeatureSpace, WindowedSpace, windows_within
from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.diagnosis.formula import Formula, Operator, Predicate
from trendloom.diagnosis.monitors import Grade, Monitor, keep_monitor, run_monitor
from trendloom.diagnosis.request import ignore_progress
from trendloom.engines.spark import features
from trendloom.engines.spark.features import features_on_spark
from trendloom.engines.spark.monitors import archive_alerts, panes_of
from trendloom.errors import ArchiveWarning, OptionError, RunError
from trendloom.model.time import TimeAxis
from trendloom.spark import watch


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archive_of_runs(tmp_path_factory.mktemp("spark runs") / "archive")


def both(
    spark: Any, archive: Archive, spans: Sequence[tuple[int, int]], window: int, space: FeatureSpace
) -> tuple[FeatureTable, FeatureTable]:
    asked = [WindowedSpace(window, windows_within(spans, window), space)]
    (here,), (there,) = features_of_archive(archive, asked, ignore_progress), features_on_spark(spark, archive, asked)
    return here, there


def agree(here: FeatureTable, there: FeatureTable) -> None:
    assert sorted(one.name for one in there.features) == sorted(one.name for one in here.features)
    assert np.array_equal(here.starts, there.starts)
    assert np.array_equal(there.take(here.features).values, here.values, equal_nan=True), "bit by bit"


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events make many pieces, as a large archive would."""
    monkeypatch.setattr(features, "FEW_EVENTS", 20)
    monkeypatch.setattr(features, "PIECES_PER_CORE", 20)


@pytest.mark.usefixtures("in_small_pieces")
def test_features_of_stretches_with_a_series_left_out(spark: Any, archive: Archive) -> None:
    out = [
        Excluded("Step", "size", ((("job", "j3"),),)),
        Excluded("Step", "size", ((("job", "j2"),),), (begin_of(2), begin_of(2) + 90)),
        Excluded("Memory", None),
    ]
    space = FeatureSpace(left_out=out, keys=("job",), length="30 s")
    here, there = both(spark, archive, [ABNORMAL, (begin_of(2), begin_of(2) + 300)], 30, space)
    agree(here, there)
    assert any(one.attribute == "size" for one in here.features)
    assert not any(one.type == "Memory" and one.attribute is None for one in here.features)


def odd_events() -> pa.Table:
    """Equal times, NULL and NaN, numbers of many kinds, ids, a category that some events lack, times before 1970."""
    draw = np.random.default_rng(5)
    count = 800
    node = np.where(draw.random(count) < 0.1, None, np.array(["a", "b", "ü'`"])[draw.integers(0, 3, count)])
    value = np.where(draw.random(count) < 0.2, np.nan, draw.normal(1e6, 1, count))
    return pa.table(
        {
            "time": np.sort(draw.integers(-300, 700, count)),
            "type": np.array(["A", "B type", "C"])[draw.integers(0, 3, count)],
            "id": [f"id{number}" for number in range(count)],
            "node": pa.array(node.tolist(), pa.string()),
            "value": value,
            "whole": pa.array([None if number % 7 == 0 else number % 13 for number in range(count)], pa.int32()),
            "flag": draw.random(count) < 0.5,
            "money": pa.array([number % 5 for number in range(count)]).cast(pa.decimal128(21, 2)),
            "always": ["one"] * count,
        }
    )


@pytest.mark.usefixtures("in_small_pieces")
def test_features_of_odd_events_with_dates(spark: Any, tmp_path: Path) -> None:
    """In two commits whose columns have different types."""
    events, scale = odd_events(), 1_000_000
    wider = events.slice(400).set_column(5, "whole", events.slice(400)["whole"].cast(pa.float64()))
    root = tmp_path / "archive"
    create_archive(root, axis=TimeAxis.timestamps(), chunk=200 * scale)
    for number, part in enumerate((events.slice(0, 400), wider)):
        write_events(root, f"part {number}", in_dates(part))
    spans = [(-290 * scale, 100 * scale), (330 * scale, 640 * scale)]
    here, there = both(spark, open_archive(root), spans, 20 * scale, FeatureSpace(length="20 s"))
    agree(here, there)
    assert {one.attribute for one in here.features} == {None, "value", "whole", "flag", "money"}
    assert any(one.category == ("node", "ü'`") for one in here.features)


def test_windows_without_events(spark: Any, archive: Archive) -> None:
    here, there = both(spark, archive, [(900_000, 900_060)], 30, FeatureSpace())
    agree(here, there)
    assert not there.values.any(), "types count nothing there"


def spread(values: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(values, begins) - np.minimum.reduceat(values, begins)


@pytest.mark.usefixtures("in_small_pieces")
def test_several_sizes_functions_of_the_user_and_a_damaged_chunk(spark: Any, tmp_path: Path) -> None:
    archive = archive_of_runs(tmp_path / "archive")
    files = [file for file in archive.files if file.kind == "events" and file.of == "Load"]
    broken = archive.root / files[1].path
    broken.write_bytes(bytes(len(broken.read_bytes())))
    sizes = [
        WindowedSpace(size, windows_within([archive.span], size), FeatureSpace(extra={"spread": spread}))
        for size in (30, 70)
    ]
    with pytest.warns(ArchiveWarning, match="is damaged and left out"):
        here = features_of_archive(open_archive(archive.root), sizes, ignore_progress)
    with pytest.warns(ArchiveWarning, match="is damaged and left out") as told:
        there = features_on_spark(spark, archive, sizes)
    assert len(told) == 1, "however many tasks met it"
    for one, other in zip(here, there, strict=True):
        agree(one, other)
        assert any(feature.function == "spread" for feature in other.features)


def test_a_function_of_the_user_that_fails_on_spark(spark: Any, archive: Archive) -> None:
    asked: dict[str, Any] = {"partition": {"job": "j3"}, "abnormal": [ABNORMAL], "engine": "spark"}
    with pytest.raises(RunError, match=r"feature function 'own' failed on .*: TypeError"):
        tl.diagnose(archive, features={"own": len}, **asked)


def test_the_reason_is_the_same_on_spark(spark: Any, archive: Archive) -> None:
    asked: dict[str, Any] = {"partition": {"job": "j3"}, "abnormal": [ABNORMAL]}
    here, there = tl.diagnose(archive, **asked), tl.diagnose(archive, engine="spark", **asked)
    assert there.sentence == here.sentence
    assert there.formula == here.formula
    assert [one.feature for one in there.candidates] == [one.feature for one in here.candidates]


# ------------------------------------------------------------------------------------------------- monitors


def watched(*clauses: list[tuple[Feature, Operator, float]]) -> Monitor:
    formula = Formula(tuple(tuple(Predicate(*one) for one in clause) for clause in clauses))
    return Monitor("watch", formula, "", Grade(0, 0, 0), {})


def of(kind: str, attribute: str | None, function: str, window: int = 30, category: Any = None) -> Feature:
    return Feature(kind, attribute, function, category, window, f"{window} s")


MONITORS = {
    "every function": watched(
        [(of("Memory", "free", "min"), "<", 95.0), (of("Memory", "free", "max"), ">", 104.0)],
        [(of("Memory", "free", "deviation"), ">", 2.0), (of("Load", "one", "change"), ">", 0.0)],
        [(of("Memory", None, "count"), ">=", 6.0)],
        [(of("Memory", "free", "count"), "=", 6.0)],
    ),
    "categories": watched(
        [(of("Memory", "free", "mean", category=("node", "n1")), "<=", 50.0)],
        [(of("Memory", None, "count", category=("node", "n9")), "<=", 0.0)],
    ),
    "what is not there": watched(
        [(of("Ghost", None, "count"), "=", 0.0)],
        [(of("Load", "two", "mean"), "<", 9.0), (of("Memory", None, "count", category=("hall", "h")), "=", 0.0)],
    ),
    "several sizes": watched(
        [(of("Memory", "free", "mean"), "<=", 50.0)], [(of("Load", "one", "mean", 60), ">", 0.9)],
        [(of("Load", None, "count", 90), ">=", 18.0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MONITORS)
def test_alerts_are_those_of_one_process(spark: Any, archive: Archive, name: str) -> None:
    monitor, span = MONITORS[name], (FIRST + 600, FIRST + 2010)
    here, there = run_monitor(archive, monitor, *span), archive_alerts(spark, archive, monitor, *span)
    assert there.column_names == here.column_names
    for column in here.column_names:
        if column == "monitor" or column.startswith("window"):
            assert there[column].to_pylist() == here[column].to_pylist()
        else:
            np.testing.assert_allclose(there[column].to_numpy(), here[column].to_numpy(), rtol=1e-9)
    assert len(here) > 0


def test_a_monitor_over_a_dataframe_of_the_caller(spark: Any, archive: Archive) -> None:
    monitor = MONITORS["categories"]
    keep_monitor(archive, monitor)
    events = spark.createDataFrame(events_of_runs())
    found = watch(events, archive.root, monitor.name).orderBy("window_start").toArrow()
    assert found["window_start"].to_pylist() == run_monitor(archive, monitor)["window_start"].to_pylist()
    with pytest.raises(OptionError, match="no monitor to watch"):
        watch(events, archive, [])
    with pytest.raises(OptionError, match="a live stream needs a watermark"):
        watch(spark.readStream.format("rate").load(), archive, monitor.name)


def test_sizes_that_hardly_ever_meet_are_refused() -> None:
    with pytest.raises(OptionError, match="which is too seldom"):
        panes_of(watched([(of("A", None, "count", 7), "=", 0.0)], [(of("A", None, "count", 997), "=", 0.0)]).formula)
