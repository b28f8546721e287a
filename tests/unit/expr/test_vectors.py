from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trendloom.errors import DataError
from trendloom.expr import arrays
from trendloom.expr.decimals import as_decimal
from trendloom.expr.vectors import Vector, constant, from_arrow, from_list, is_true, kind_of, nothing, to_arrow, unify
from trendloom.model.schema import Kind


def read(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[Any]:
    return from_arrow(array, kind_of(array.type)).to_list()


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_integers_of_every_width_are_int64(type_: pa.DataType) -> None:
    vector = from_arrow(pa.array([7, None, 0, 100], type_), Kind.INT)
    assert vector.values.dtype == np.int64
    assert vector.to_list() == [7, None, 0, 100]


def test_integers_beyond_int64_stay_exact() -> None:
    vector = from_arrow(pa.array([2**64 - 1, None, 1], pa.uint64()), Kind.INT)
    assert vector.values.dtype == object
    assert vector.to_list() == [2**64 - 1, None, 1]


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_nan_is_null(type_: pa.DataType) -> None:
    values = np.array([0.5, math.nan, math.inf, 0.0], type_.to_pandas_dtype())
    array = pa.array(values, type_, mask=np.array([False, False, False, True]))
    assert read(array) == [0.5, None, math.inf, None]


@pytest.mark.parametrize("digits", [5, 18, 38, 76])
def test_decimals_without_fraction_are_exact_integers(digits: int) -> None:
    most = 10**digits - 1
    type_ = pa.decimal128(digits, 0) if digits <= 38 else pa.decimal256(digits, 0)
    array = pa.array([most, None, -most, 0], pa.int64()) if digits <= 18 else None
    decimals = pa.array([Decimal(most), None, Decimal(-most), Decimal(0)], type_)
    assert kind_of(type_) is Kind.INT
    assert read(decimals) == [most, None, -most, 0]
    assert array is None or read(array) == read(decimals)


@pytest.mark.parametrize(("digits", "scale"), [(5, 2), (15, 15), (18, 4), (38, 10), (60, 30)])
def test_decimals_are_exact_and_as_doubles_the_nearest(digits: int, scale: int) -> None:
    type_ = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    numbers = [as_decimal(int("7" * digits), scale), None, as_decimal(-3, scale), Decimal(0)]
    array = pa.array(numbers, type_)
    assert kind_of(type_) is Kind.DECIMAL
    assert read(array) == numbers
    assert from_arrow(array, Kind.FLOAT).to_list() == [None if n is None else float(n) for n in numbers]


@pytest.mark.parametrize("type_", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 2), pa.decimal256(60, 2)])
def test_decimals_of_every_width_are_read_without_a_loop(type_: pa.DataType) -> None:
    array = pa.array([Decimal("9.99"), Decimal("1.25"), None, Decimal("-3.50")], type_)
    vector = from_arrow(array.slice(1), Kind.DECIMAL)
    assert vector.values.dtype == np.int64
    assert (vector.values[[0, 2]].tolist(), vector.scale) == ([125, -350], 2)
    assert vector.to_list() == [Decimal("1.25"), None, Decimal("-3.50")]
    encoded = array.cast(pa.decimal128(10, 2)).dictionary_encode()
    assert from_arrow(encoded, Kind.DECIMAL).to_list() == array.to_pylist()


@pytest.mark.parametrize("scale", [0, 2, 38])
def test_values_around_the_edges_of_words_are_exact(scale: int) -> None:
    edges = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, -(2**64), 2**126, -(2**126), 0, -1]
    numbers = [as_decimal(edge, scale) for edge in edges]
    array = pa.array([*numbers, None], pa.decimal128(38, scale))
    assert read(array) == [*numbers, None]
    assert [Decimal(str(value)) for value in read(pa.array(numbers[:1], pa.decimal256(60, scale)))] == numbers[:1]
    assert to_arrow(from_arrow(array, kind_of(array.type)), array.type).equals(array)


def test_a_negative_scale_means_whole_numbers() -> None:
    type_ = pa.decimal128(5, -2)
    assert kind_of(type_) is Kind.INT
    assert read(pa.array([Decimal(1200), None, Decimal(-300)], type_)) == [1200, None, -300]


def test_decimals_without_a_value_keep_their_scale() -> None:
    for array in (pa.array([], pa.decimal128(9, 3)), pa.nulls(2, pa.decimal128(9, 3))):
        vector = from_arrow(array, Kind.DECIMAL)
        assert (len(vector), vector.scale) == (len(array), 3)
        assert vector.take(np.full(2, -1)).scale == 3
        assert to_arrow(vector, array.type).equals(array)


@pytest.mark.parametrize("type_", TEXTS, ids=str)
def test_strings_are_ranks_in_a_sorted_dictionary(type_: pa.DataType) -> None:
    vector = from_arrow(pa.array(["b", None, "", "é", "Z", "b"]).cast(type_), Kind.STRING)
    assert vector.to_list() == ["b", None, "", "é", "Z", "b"]
    assert vector.dictionary is not None
    assert vector.dictionary.tolist() == ["", "Z", "b", "é"]


@pytest.mark.parametrize("type_", TEXTS, ids=str)
def test_chunks_share_one_dictionary(type_: pa.DataType) -> None:
    parts = [pa.array(["b", None]).cast(type_), pa.array([], type_), pa.array(["a", "b", "c"]).cast(type_)]
    assert read(pa.chunked_array(parts)) == ["b", None, "a", "b", "c"]
    assert read(pa.chunked_array([], type_)) == []


def test_dictionaries_with_repetitions_and_nulls_are_cleaned() -> None:
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["x", None, "x"]))
    other = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["z", "a"]))
    empty = pa.DictionaryArray.from_arrays(pa.array([None], pa.int64()), pa.array([], pa.string()))
    vector = from_arrow(pa.chunked_array([odd, other, empty]), Kind.STRING)
    assert vector.to_list() == ["x", None, None, "x", "a", "z", None]
    assert vector.dictionary is not None
    assert vector.dictionary.tolist() == ["a", "x", "z"]


@pytest.mark.parametrize(("unit", "ticks"), [("s", 1_000_000), ("ms", 1_000), ("us", 1)])
def test_times_and_durations_are_microseconds(unit: Any, ticks: int) -> None:
    assert read(pa.array([3, None, -2], pa.timestamp(unit))) == [3 * ticks, None, -2 * ticks]
    assert read(pa.array([3, None, -2], pa.timestamp(unit, "UTC"))) == [3 * ticks, None, -2 * ticks]
    assert read(pa.array([3, None, -2], pa.duration(unit))) == [3 * ticks, None, -2 * ticks]


def test_dates_are_midnights() -> None:
    day = 86_400_000_000
    assert read(pa.array([date(1970, 1, 2), None, date(1969, 12, 31)], pa.date32())) == [day, None, -day]
    assert read(pa.array([date(1970, 1, 2), None], pa.date64())) == [day, None]


def test_nanoseconds_must_be_whole_microseconds() -> None:
    # What lies under a NULL does not matter.
    garbage = pa.array(np.array([5_000, 1], np.int64), mask=np.array([False, True])).cast(pa.timestamp("ns"))
    assert read(garbage) == [5, None]
    with pytest.raises(DataError, match="not whole microseconds") as caught:
        read(pa.array([1], pa.timestamp("ns")))
    assert caught.value.hint


def test_times_out_of_range_are_refused() -> None:
    with pytest.raises(DataError, match="beyond the range"):
        read(pa.array([2**62], pa.timestamp("s")))


def test_booleans_slices_and_null_columns() -> None:
    assert read(pa.array([True, None, False])) == [True, None, False]
    assert read(pa.array([None, 1, None, 3]).slice(1, 2)) == [1, None]
    assert read(pa.array([0.5, None, 2.5]).slice(1)) == [None, 2.5]
    assert read(pa.array(["a", "b", None]).slice(1)) == ["b", None]
    assert read(pa.array([Decimal("1.50"), Decimal("2.25")]).slice(1)) == [Decimal("2.25")]
    assert kind_of(pa.null()) is Kind.NULL
    assert from_arrow(pa.nulls(2), Kind.STRING).to_list() == [None, None]
    assert from_arrow(pa.nulls(2, pa.int64()), Kind.BOOL).to_list() == [None, None]


def test_plain_columns_are_not_copied() -> None:
    array = pa.array(np.arange(5))
    assert np.shares_memory(from_arrow(array, Kind.INT).values, array.to_numpy())


def test_integers_are_read_as_numbers_or_times_where_asked() -> None:
    assert from_arrow(pa.array([1, None]), Kind.FLOAT).to_list() == [1.0, None]
    assert from_arrow(pa.array([1, None]), Kind.TIME).kind is Kind.TIME
    with pytest.raises(DataError, match="not read as integer"):
        from_arrow(pa.array(["1"]), Kind.INT)
    with pytest.raises(DataError, match="cannot be computed with"):
        from_arrow(pa.array([[1]]), Kind.OTHER)


def test_take_minus_one_is_null() -> None:
    column = from_list(["x", None, "y"], Kind.STRING)
    assert column.take(np.array([2, -1, 1, 0])).to_list() == ["y", None, None, "x"]
    assert column.take(np.array([0, 2])).to_list() == ["x", "y"]
    assert from_list([5, 6], Kind.INT).take(np.array([1, -1])).to_list() == [6, None]
    assert from_list([], Kind.FLOAT).take(np.array([-1, -1])).to_list() == [None, None]


def test_constants_have_length_one_and_stretch() -> None:
    assert constant(2**70, Kind.INT).broadcast(2).to_list() == [2**70, 2**70]
    assert constant("a", Kind.STRING).broadcast(3).to_list() == ["a", "a", "a"]
    assert constant(3, Kind.FLOAT).to_list() == [3.0]
    assert constant(None, Kind.STRING).to_list() == [None]
    assert constant(True, Kind.BOOL).broadcast(0).to_list() == []


def test_only_known_truth_is_true() -> None:
    assert is_true(from_list([True, False, None], Kind.BOOL)).tolist() == [True, False, False]
    assert is_true(nothing(Kind.NULL, 2)).tolist() == [False, False]


def test_unified_strings_compare_by_rank() -> None:
    left, right = unify((from_list(["b", "d", None], Kind.STRING), from_list(["c", "a", "d"], Kind.STRING)))
    assert left.dictionary is right.dictionary
    assert (left.values < right.values).tolist()[:2] == [True, False]
    assert (left.to_list(), right.to_list()) == (["b", "d", None], ["c", "a", "d"])


@pytest.mark.parametrize(
    ("values", "kind", "type_", "expected"),
    [
        ([1, None], Kind.INT, None, pa.array([1, None], pa.int64())),
        ([2**70, None], Kind.INT, None, pa.array([Decimal(2**70), None], pa.decimal128(38, 0))),
        ([1, 2**64 - 1], Kind.INT, pa.uint64(), pa.array([1, 2**64 - 1], pa.uint64())),
        ([1, None], Kind.INT, pa.int8(), pa.array([1, None], pa.int8())),
        ([0.1, None], Kind.FLOAT, None, pa.array([0.1, None])),
        ([0.1, None], Kind.FLOAT, pa.float32(), pa.array([0.1, None], pa.float32())),
        ([True, None], Kind.BOOL, None, pa.array([True, None])),
        (["b", None, "a"], Kind.STRING, None, pa.array(["b", None, "a"])),
        (["b", None], Kind.STRING, pa.large_string(), pa.array(["b", None], pa.large_string())),
        ([5, None], Kind.TIME, None, pa.array([5, None], pa.int64())),
        ([1_000_000, None], Kind.TIME, pa.timestamp("s"), pa.array([1, None], pa.timestamp("s"))),
        ([5], Kind.TIME, pa.timestamp("ns", "UTC"), pa.array([5_000], pa.timestamp("ns", "UTC"))),
        ([86_400_000_000], Kind.TIME, pa.date32(), pa.array([date(1970, 1, 2)])),
        ([1_000], Kind.DURATION, pa.duration("ms"), pa.array([1], pa.duration("ms"))),
        ([None, None], Kind.NULL, None, pa.nulls(2)),
        ([None, None], Kind.NULL, pa.int16(), pa.nulls(2, pa.int16())),
    ],
)
def test_vectors_become_arrow_columns(values: list[Any], kind: Kind, type_: Any, expected: Any) -> None:
    found = to_arrow(from_list(values, kind), type_)
    assert found.type == expected.type
    assert found.equals(expected)


def test_dictionary_columns_come_back_as_such() -> None:
    type_ = pa.dictionary(pa.int32(), pa.string())
    found = to_arrow(from_list(["b", None, "b"], Kind.STRING), type_)
    assert found.type == type_
    assert found.to_pylist() == ["b", None, "b"]


def test_a_result_that_does_not_fit_says_so() -> None:
    with pytest.raises(DataError, match="does not fit"):
        to_arrow(from_list([300], Kind.INT), pa.int8())


def test_timestamps_survive_the_round_trip() -> None:
    moment = datetime(2024, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    array = pa.array([moment, None, moment + timedelta(days=40)], pa.timestamp("us", "UTC"))
    assert to_arrow(from_arrow(array, Kind.TIME), array.type).equals(array)


def test_vectors_know_their_length() -> None:
    assert len(Vector(Kind.INT, np.arange(3))) == 3


@pytest.mark.parametrize("type_", TEXTS, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_read_texts_as_one_does(type_: pa.DataType, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LEAST_SLICE", 1)
    for texts in (["b", None, "a", "é", "b", ""], [None, None, "b"], ["c"], [None, "z", None, "y"]):
        for column in (pa.array(texts, type_), pa.chunked_array([texts[:1], texts[1:]], type_)):
            vector = from_arrow(column, Kind.STRING, threads)
            assert vector.to_list() == texts
            assert vector.dictionary is not None
            assert vector.dictionary.tolist() == sorted({text for text in texts if text is not None})
