"""Features of events: windows, functions, categories, what is left out, and functions of the user."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.diagnosis.feature_tables import feature_table, features_at

from trendloom.diagnosis.feature_space import Excluded, FeatureSpace, windows_within
from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.errors import DataError, OptionError, RunError

NAN = float("nan")


def usage(**more: Any) -> pa.Table:
    return pa.table({"time": [4, 5, 6, 17, 18, 19], "percent": [35, 49, 99, 86, 61, 43], **more})


def row(table: FeatureTable, name: str) -> list[float]:
    """The numbers of a feature, by the first part of its name."""
    (found,) = [place for place, feature in enumerate(table.features) if feature.name.startswith(name + " over")]
    return [float(value) for value in table.values[found]]


def names(table: FeatureTable) -> set[str]:
    return {feature.name.split(" over")[0] for feature in table.features}


def test_every_function_over_every_window() -> None:
    found = feature_table({"CPU": usage()}, "time", 0, 30, 10, length="10 s")
    assert found.starts.tolist() == [0, 10, 20]
    assert row(found, "CPU count") == [3, 3, 0]
    assert row(found, "CPU.percent mean") == pytest.approx([61, 190 / 3, NAN], nan_ok=True)
    assert row(found, "CPU.percent min") == pytest.approx([35, 43, NAN], nan_ok=True)
    assert row(found, "CPU.percent max") == pytest.approx([99, 86, NAN], nan_ok=True)
    assert row(found, "CPU.percent deviation") == pytest.approx(
        [np.std([35, 49, 99]), np.std([86, 61, 43]), NAN], nan_ok=True
    )
    assert row(found, "CPU.percent change") == pytest.approx([64, -43, NAN], nan_ok=True)
    assert found.features[1].name.endswith("over 10 s")
    assert len(found) == 6


def test_only_windows_that_lie_whole_inside() -> None:
    assert feature_table({"CPU": usage()}, "time", 3, 29, 10).starts.tolist() == [10]
    assert windows_within([(15, 30), (-25, 3)], 10).tolist() == [-20, -10, 20]
    with pytest.raises(OptionError, match="no whole window of 30 s lies in the stretch of time"):
        feature_table({"CPU": usage()}, "time", 1, 30, 30, length="30 s")


def test_windows_with_gaps_between_them() -> None:
    found = features_at({"CPU": usage()}, "time", np.array([0, 16, 30]), 2, FeatureSpace())
    assert row(found, "CPU count") == [0, 1, 0]


def test_equal_times_change_from_the_least_to_the_greatest() -> None:
    events = pa.table({"time": [1, 1, 3, 3, 2], "x": [5.0, 2.0, 4.0, 9.0, 70.0]})
    assert row(feature_table({"T": events}, "time", 0, 10, 10), "T.x change") == [7]


def test_timestamps_count_microseconds_in_any_unit() -> None:
    times = [datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in (1, 2, 31)]
    for unit in ("ms", "us", "ns"):
        events = pa.table({"time": pa.array(times, pa.timestamp(unit, "UTC"))})
        found = feature_table({"T": events}, "time", 0, 60_000_000, 30_000_000)
        assert row(found, "T count") == [2, 1]


def test_rows_in_any_order_and_chunks() -> None:
    events = usage(node=["a", "b", "a", "b", "a", "b"])
    mixed = pa.concat_tables([events.take([4, 0, 3]), events.take([5, 1, 2])])
    one, other = (feature_table({"CPU": some}, "time", 0, 20, 10) for some in (events, mixed))
    assert one.features == other.features
    np.testing.assert_array_equal(one.values, other.values)


def test_text_with_few_values_is_a_category() -> None:
    found = feature_table({"CPU": usage(node=["a", "b", "a", "b", "b", None])}, "time", 0, 20, 10)
    assert row(found, "CPU[node = a] count") == [2, 0]
    assert row(found, "CPU[node = b] count") == [1, 2]
    assert row(found, "CPU[node = a].percent max") == pytest.approx([99, NAN], nan_ok=True)
    assert row(found, "CPU[node = b].percent change") == [0, -25]


def test_what_is_no_category() -> None:
    many = pa.table({"time": range(30), "id": [str(i) for i in range(30)], "type": ["T"] * 30})
    assert names(feature_table({"T": many}, "time", 0, 30, 10)) == {"T count"}
    assert "T[id = 4] count" in names(feature_table({"T": many}, "time", 0, 10, 10)), "ten values of this stretch"


def test_values_of_other_windows_are_not_counted() -> None:
    """Neither as categories of this stretch, nor as too many of them, whether or not text came as a dictionary."""
    many = pa.table({"time": range(60), "id": pa.array([str(i // 5) * 3 for i in range(60)]).dictionary_encode()})
    many = pa.concat_tables([many.slice(0, 30), many.slice(30)])
    plain = many.set_column(1, "id", many.column("id").cast(pa.string()))
    one, other = (feature_table({"T": some}, "time", 0, 10, 10) for some in (many, plain))
    assert names(one) == names(other) == {"T count", "T[id = 000] count", "T[id = 111] count"}


def test_names_of_partitions_are_neither_categories_nor_numbers() -> None:
    """`CPU[job = a] count` tells job a from the others by definition."""
    found = {"CPU": usage(job=["a", "a", "b", "b", "b", "b"], id=[1, 1, 2, 2, 2, 2])}
    plain = feature_table({"CPU": usage()}, "time", 0, 20, 10)
    assert names(feature_table(found, "time", 0, 20, 10, keys=["job", "id"])) == names(plain)
    assert "CPU[job = a] count" in names(feature_table(found, "time", 0, 20, 10))


def test_columns_of_every_numeric_kind() -> None:
    events = pa.table(
        {
            "time": [0, 1],
            "on": [True, False],
            "price": pa.array([1, 4]).cast(pa.decimal128(25, 2)),
            "small": pa.array([1, 2], pa.int8()),
            "when": pa.array([1, 2], pa.timestamp("s")),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    found = feature_table({"T": events}, "time", 0, 10, 10, functions=["mean"])
    assert names(found) >= {"T.on mean", "T.price mean", "T.small mean", "T[kind = a].price mean"}
    assert row(found, "T.price mean") == [2.5]
    assert row(found, "T.on mean") == [0.5]
    assert not any("when" in name for name in names(found))


def test_a_column_that_lacks_values_is_counted() -> None:
    events = pa.table(
        {"time": [1, 2, 11, 12], "x": [1.0, None, None, NAN], "y": [1, 2, 3, 4], "none": pa.nulls(4, pa.int64())}
    )
    found = feature_table({"T": events}, "time", 0, 20, 10)
    assert row(found, "T.x count") == [1, 0]
    assert row(found, "T.x mean") == pytest.approx([1, NAN], nan_ok=True)
    assert "T.y count" not in names(found)
    assert not any("none" in name for name in names(found))


def test_equal_values_have_no_deviation() -> None:
    """0.1 + 0.1 + 0.1 is not three times 0.1, and yet all three are their mean."""
    found = feature_table({"T": pa.table({"time": [1, 2, 3], "x": [0.1] * 3})}, "time", 0, 10, 10)
    assert row(found, "T.x deviation") == [0]
    assert row(found, "T.x mean") == pytest.approx([0.1], rel=1e-12)


def test_the_order_of_addition_does_not_matter() -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit; as values of a feature they are equal."""
    events = pa.table({"time": [1, 2, 3, 11, 12, 13], "x": [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]})
    means = row(feature_table({"T": events}, "time", 0, 20, 10), "T.x mean")
    assert means[0] == means[1]


def test_a_type_without_events_counts_nothing() -> None:
    empty = usage().slice(0, 0)
    assert row(feature_table({"CPU": empty}, "time", 0, 20, 10), "CPU count") == [0, 0]


# ------------------------------------------------------------------------------------------- what is left out


def io(**more: Any) -> pa.Table:
    return pa.table({"time": [1, 2, 3, 14], "job": ["j1", "j2", "j1", "j2"], "size": [10, 20, 30, 40], **more})


def test_the_annotated_series_is_left_out() -> None:
    left = [Excluded("DataIO", "size", ((("job", "j1"),),))]
    found = feature_table({"DataIO": io()}, "time", 0, 20, 10, left_out=left)
    assert row(found, "DataIO.size mean") == [20, 40], "of the other job"
    assert row(found, "DataIO count") == [3, 1]
    assert "DataIO[job = j1].size mean" not in names(found)


def test_counts_can_be_left_out_too() -> None:
    left = [Excluded("DataIO", None, ((("job", "j1"),),))]
    found = feature_table({"DataIO": io()}, "time", 0, 20, 10, left_out=left)
    assert row(found, "DataIO count") == [1, 1]
    assert row(found, "DataIO.size max") == [30, 40]
    everywhere = feature_table({"DataIO": io()}, "time", 0, 20, 10, left_out=[Excluded("DataIO", None)])
    assert not any(feature.function == "count" for feature in everywhere.features)


def test_partitions_of_several_attributes() -> None:
    partitions = ((("job", "j1"), ("user", 7)), (("job", "j2"), ("user", 8)))
    events = io(user=[7, 7, 8, 8])
    encoded = events.set_column(1, "job", events.column("job").dictionary_encode())
    for some in (events, encoded):
        left = [Excluded("DataIO", "size", partitions)]
        found = feature_table({"DataIO": some}, "time", 0, 20, 10, left_out=left)
        assert row(found, "DataIO.size min") == pytest.approx([20, NAN], nan_ok=True)
        assert row(found, "DataIO.size max") == pytest.approx([30, NAN], nan_ok=True)


def test_events_without_the_attribute_are_in_no_partition() -> None:
    left = [Excluded("CPU", "percent", ((("job", "j1"),),))]
    assert row(feature_table({"CPU": usage()}, "time", 0, 20, 10, left_out=left), "CPU.percent max") == [99, 86]


# ------------------------------------------------------------------------------------------ functions of users


def spread(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts) + 0 * ends


def test_a_function_of_the_user() -> None:
    found = feature_table({"CPU": usage(node=list("ababab"))}, "time", 0, 30, 10, extra={"spread": spread})
    assert row(found, "CPU.percent spread") == pytest.approx([64, 43, NAN], nan_ok=True)
    assert row(found, "CPU[node = b].percent spread") == pytest.approx([0, 43, NAN], nan_ok=True)


def test_a_function_that_raises_is_named() -> None:
    def broken(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        raise ValueError("no such thing")

    with pytest.raises(RunError, match=r"feature function 'peak' failed on CPU.percent: ValueError: no such thing"):
        feature_table({"CPU": usage()}, "time", 0, 20, 10, extra={"peak": broken})


def test_a_function_must_give_a_number_per_window() -> None:
    with pytest.raises(RunError, match=r"'peak' gave an array of shape \(6,\) for 2 windows of CPU.percent"):
        feature_table({"CPU": usage()}, "time", 0, 20, 10, extra={"peak": lambda values, starts, ends: values})


def test_wrong_names_of_functions() -> None:
    with pytest.raises(OptionError, match="did you mean 'mean'"):
        feature_table({"CPU": usage()}, "time", 0, 20, 10, functions=["meen"])
    with pytest.raises(OptionError, match="'max' is a feature function already"):
        feature_table({"CPU": usage()}, "time", 0, 20, 10, extra={"max": spread})
    with pytest.raises(OptionError, match="a window of 0 has no length"):
        feature_table({"CPU": usage()}, "time", 0, 20, 0)


def test_wrong_times() -> None:
    with pytest.raises(DataError, match="events of type CPU have no column 'at'"):
        feature_table({"CPU": usage()}, "at", 0, 20, 10)
    with pytest.raises(DataError, match="1 events of type CPU have no time"):
        feature_table({"CPU": pa.table({"time": [1, None]})}, "time", 0, 20, 10)


# ------------------------------------------------------------------------------------------- tables of features


def test_names_and_words() -> None:
    memory = Feature("MemoryUsage", "free_now", "mean", None, 30, "30 s")
    assert (memory.name, memory.words) == ("MemoryUsage.free_now mean over 30 s", "free now memory usage")
    counted = Feature("TaskStart", None, "count", ("node", "n3"), 30, "30 s")
    assert counted.name == "TaskStart[node = n3] count over 30 s"
    assert counted.words == "number of TaskStart events (node n3)"
    assert Feature("CPU", "idle", "deviation").words == "spread of idle CPU"
    assert Feature("CPU", "idle", "count").words == "number of values of idle CPU"
    assert Feature("CPU", "idle", "peak", window=5).name == "CPU.idle peak over 5"
    assert all(Feature.from_json(one.to_json()) == one for one in (memory, counted))
    assert sorted([counted, memory]) == [memory, counted], "what is of all events is simpler"


def test_features_at_points_of_time() -> None:
    table = FeatureTable((Feature("T", None, "count"),), 10, np.array([0, 10, 30]), np.array([[1.0, 2.0, 3.0]]))
    found = table.at(np.array([-1, 0, 9, 10, 25, 39, 40]))[0]
    np.testing.assert_array_equal(found, [NAN, 1, 1, 2, NAN, 3, NAN])
    none = FeatureTable(table.features, 10, np.zeros(0, np.int64), np.zeros((1, 0)))
    assert np.isnan(none.at(np.array([1, 2]))).all()


def test_a_feature_that_is_not_there() -> None:
    table = feature_table({"CPU": usage()}, "time", 0, 20, 10, length="10 s")
    with pytest.raises(DataError, match=r"no feature 'Disk\.free mean over 10 s'"):
        table.take([Feature("Disk", "free", "mean", None, 10, "10 s")])


def test_long_ids_are_numbers_like_others() -> None:
    events = pa.table({"time": [1, 2], "id": [2**62 + 1, 2**62 + 3], "big": pa.array([0, 2**64 - 1], pa.uint64())})
    found = feature_table({"T": events}, "time", 0, 10, 10, functions=["max"])
    assert row(found, "T.id max") == [2.0**62]
    assert row(found, "T.big max") == [2.0**64]
