"""Columns as the expressions see them: a NumPy array, a mask of what is known, and for strings a sorted dictionary.

Strings are numbers here: a value is its rank in a sorted dictionary, so comparing, sorting and grouping strings is
comparing, sorting and grouping integers. A vector of length 1 stands for a constant of any length, as in NumPy.
Arrow columns become vectors without loss: integers and decimals stay exact at any size (decimals as integers in units
of their last digit, see `expr.decimals`), times are whole microseconds or refused, NaN becomes NULL. Plain numbers are
views of Arrow's memory, not copies; a string column costs one hash pass. How vectors are computed with is in
`expr.evaluate`.

Invariants: a dictionary is sorted, without repetitions and never empty; slots that are not valid hold anything of
the right type (for strings: any rank of the dictionary), so that kernels may compute on them and ignore the result;
a valid FLOAT is never NaN; integers and units of decimals are int64, or Python ints in an object array where int64
cannot hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from trendloom.errors import DataError
from trendloom.expr.arrays import (
    NO_TEXT,
    Array,
    ArrowArray,
    ArrowColumn,
    Coder,
    as_float,
    chunks,
    encode_strings,
    in_one,
    narrow,
    to_float,
)
from trendloom.expr.decimals import (
    as_decimal,
    as_doubles,
    exact_array,
    read_units,
    rescaled,
    scale_of,
    units_of,
    write_units,
)
from trendloom.model.schema import Kind

Scalar = int | float | Decimal | str | bool | None
"""A value that is written in a query."""


@dataclass(frozen=True, eq=False)
class Vector:
    """A column: `valid` None means that no value is NULL; `dictionary` belongs to strings only.

    `scale`: the digits after the point of decimals, whose `values` are units; 0 for all other kinds.
    """

    kind: Kind
    values: Array
    valid: Array | None = None
    dictionary: Array | None = None
    scale: int = 0

    def __len__(self) -> int:
        return len(self.values)

    def part(self, low: int, high: int) -> Vector:
        """The rows from `low` up to `high`, as views."""
        valid = None if self.valid is None else self.valid[low:high]
        return replace(self, values=self.values[low:high], valid=valid)

    def take(self, indices: Array) -> Vector:
        """The values at these rows, NULL where the index is -1. O(len(indices))."""
        missing = indices < 0
        if not missing.any():
            valid = None if self.valid is None else self.valid[indices]
            return replace(self, values=self.values[indices], valid=valid)
        if len(self) == 0:
            return nothing(self.kind, len(indices), self.scale)
        valid = ~missing if self.valid is None else ~missing & self.valid[indices]
        return replace(self, values=self.values[indices], valid=valid)

    def broadcast(self, length: int) -> Vector:
        """The vector at full length: one of length 1 is repeated (without copying), others must have it already."""
        if len(self) == length:
            return self
        valid = None if self.valid is None else np.broadcast_to(self.valid, length)
        return replace(self, values=np.broadcast_to(self.values, length), valid=valid)

    def to_list(self) -> list[Any]:
        """Python values, None for NULL. For results and tests, not for hot paths."""
        if self.dictionary is not None:
            found = self.dictionary[self.values].tolist()
        elif self.scale:
            found = [as_decimal(units, self.scale) for units in self.values.tolist()]
        else:
            found = self.values.tolist()
        if self.valid is None:
            return list(found)
        return [value if known else None for value, known in zip(found, self.valid.tolist(), strict=True)]


DTYPES: dict[Kind, type[np.generic]] = {
    Kind.INT: np.int64,
    Kind.DECIMAL: np.int64,
    Kind.FLOAT: np.float64,
    Kind.STRING: np.int64,
    Kind.BOOL: np.bool_,
    Kind.TIME: np.int64,
    Kind.DURATION: np.int64,
    Kind.NULL: np.int64,
    Kind.OTHER: np.int64,
}
"""How values of a kind are stored (integers beyond int64: as objects)."""


def nothing(kind: Kind, length: int = 1, scale: int = 0) -> Vector:
    """All NULL."""
    dictionary = NO_TEXT if kind is Kind.STRING else None
    return Vector(kind, np.zeros(length, DTYPES[kind]), np.zeros(length, np.bool_), dictionary, scale)


def constant(value: Scalar, kind: Kind) -> Vector:
    """One value, as a vector of length 1 that goes with vectors of every length."""
    if value is None or kind is Kind.NULL:
        return nothing(kind)
    if isinstance(value, str):
        return Vector(kind, np.zeros(1, np.int64), None, np.array([value], dtype=object))
    return from_list([value], kind, scale_of(value) if isinstance(value, Decimal) else 0)


def from_list(values: Sequence[Any], kind: Kind, scale: int = 0) -> Vector:
    """Python values (None for NULL) as a vector; those of decimals have at most `scale` digits after the point."""
    known = [value is not None and value == value for value in values]
    valid = None if all(known) else np.array(known, np.bool_)
    if kind is Kind.STRING:
        codes, dictionary = encode_strings(pa.array(values, pa.large_string()))
        return Vector(kind, codes, valid, dictionary)
    if kind in (Kind.NULL, Kind.OTHER):
        return nothing(kind, len(values))
    filled = [value if good else 0 for value, good in zip(values, known, strict=True)]
    if kind is Kind.FLOAT:
        return known_doubles(np.array([to_float(value) for value in filled], np.float64), valid)
    if kind is Kind.BOOL:
        return Vector(kind, np.array(filled, np.bool_), valid)
    objects = np.empty(len(filled), dtype=object)
    objects[:] = [units_of(value, scale) for value in filled] if kind is Kind.DECIMAL else filled
    return Vector(kind, narrow(objects, valid), valid, scale=scale)


def known_doubles(values: Array, valid: Array | None, kind: Kind = Kind.FLOAT) -> Vector:
    """Doubles as a vector: NaN is NULL."""
    unknown = np.isnan(values)
    if unknown.any():
        valid = ~unknown if valid is None else valid & ~unknown
    return Vector(kind, values, valid)


def is_true(vector: Vector) -> Array:
    """Where a condition holds: unknown is not true."""
    if vector.kind is Kind.NULL:
        return np.zeros(len(vector), np.bool_)
    return vector.values if vector.valid is None else vector.values & vector.valid


# ------------------------------------------------------------------------------------------------- decimals


def to_doubles(vector: Vector) -> Vector:
    """A vector of numbers as doubles, each the nearest."""
    if vector.values.dtype == np.float64:
        return vector
    return known_doubles(as_doubles(vector.values, vector.scale), vector.valid)


def aligned(vectors: Sequence[Vector]) -> list[Vector]:
    """Numbers that can be compared as they stand: units of one size, and doubles where a decimal meets a double."""
    decimal = any(vector.scale for vector in vectors)
    if decimal and any(vector.values.dtype == np.float64 for vector in vectors):
        return [to_doubles(vector) for vector in vectors]
    return [at_scale(vector, max(vector.scale for vector in vectors)) for vector in vectors] if decimal else [*vectors]


def at_scale(vector: Vector, scale: int) -> Vector:
    """The same numbers with so many digits after the point, not fewer than they have."""
    if vector.scale == scale or vector.values.dtype == np.float64:
        return vector
    return replace(vector, values=rescaled(vector.values, scale - vector.scale), scale=scale)


# --------------------------------------------------------------------------------------- lengths and validity


def joint_length(vectors: Sequence[Vector]) -> int:
    """The length of a result over these vectors: that of those that are not constants."""
    return next((len(vector) for vector in vectors if len(vector) != 1), 1)


def joint_validity(vectors: Sequence[Vector], length: int) -> Array | None:
    """Where all the vectors are known; None where that is everywhere."""
    masks = [vector.valid for vector in vectors if vector.valid is not None]
    if not masks:
        return None
    joint = masks[0]
    for mask in masks[1:]:
        joint = joint & mask
    return joint if len(joint) == length else np.broadcast_to(joint, length)


def unify(vectors: Sequence[Vector]) -> list[Vector]:
    """The same strings over one common dictionary. Free where they share one already (takes of one column do)."""
    dictionaries = [NO_TEXT if vector.dictionary is None else vector.dictionary for vector in vectors]
    if all(dictionary is dictionaries[0] for dictionary in dictionaries):
        return list(vectors)
    ranks, merged = encode_strings(pa.array(np.concatenate(dictionaries), pa.large_string()))
    parts = np.split(ranks, np.cumsum([len(dictionary) for dictionary in dictionaries])[:-1])
    return [
        replace(vector, values=part[vector.values], dictionary=merged)
        for vector, part in zip(vectors, parts, strict=True)
    ]


# ------------------------------------------------------------------------------------------ from and to Arrow


def joined(vectors: Sequence[Vector]) -> Vector:
    """The rows of vectors of one kind and scale, one after the other."""
    first, *others = unify(vectors)
    if not others:
        return first
    valid = None
    if any(one.valid is not None for one in (first, *others)):
        valid = np.concatenate([np.ones(len(v), np.bool_) if v.valid is None else v.valid for v in (first, *others)])
    return replace(first, values=np.concatenate([one.values for one in (first, *others)]), valid=valid)


def kind_of(arrow_type: pa.DataType) -> Kind:
    """What values of an Arrow type are to the language."""
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_integer(arrow_type):
        return Kind.INT
    if types.is_floating(arrow_type):
        return Kind.FLOAT
    if types.is_decimal(arrow_type):
        return Kind.DECIMAL if arrow_type.scale > 0 else Kind.INT
    if _is_text(arrow_type):
        return Kind.STRING
    if types.is_boolean(arrow_type):
        return Kind.BOOL
    if types.is_timestamp(arrow_type) or types.is_date(arrow_type):
        return Kind.TIME
    if types.is_duration(arrow_type):
        return Kind.DURATION
    return Kind.NULL if types.is_null(arrow_type) else Kind.OTHER


def scale_of_type(arrow_type: pa.DataType) -> int:
    """Digits after the point of the values of an Arrow type; 0 where they are not decimals."""
    if types.is_dictionary(arrow_type):
        return scale_of_type(arrow_type.value_type)
    return max(arrow_type.scale, 0) if types.is_decimal(arrow_type) else 0


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type))


# ---------------------------------------------------------------------------------------------------- reading


READ_AS = {Kind.INT: (Kind.FLOAT, Kind.TIME, Kind.DURATION), Kind.DECIMAL: (Kind.FLOAT,)}
"""As which other kinds a column can be read."""


def from_arrow(array: ArrowColumn, kind: Kind, threads: int = 1, coder: Coder | None = None) -> Vector:
    """The column as a vector of `kind`: its own, FLOAT or a time for integers, FLOAT for decimals, any for NULLs.

    `threads`: how many may share the work; only strings take long, and `coder` may be a quicker way for them.
    """
    if kind is Kind.NULL or array.null_count == len(array):
        return nothing(kind, len(array), scale_of_type(array.type) if kind is Kind.DECIMAL else 0)
    own = kind_of(array.type)
    if kind is not own and kind not in READ_AS.get(own, ()):
        raise DataError(
            f"a column of {array.type} is not read as {kind}",
            hint=f"its values are of kind {own}; convert the column or change the query",
        )
    if own is Kind.OTHER:
        raise DataError(f"a column of {array.type} cannot be computed with", hint="leave it out of conditions")
    if own is Kind.STRING:
        return _read_strings(array, kind, threads, coder)
    return _read_plain(_one_chunk(array), kind)


def _one_chunk(array: ArrowColumn) -> ArrowArray:
    array = in_one(array)
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def _mask(array: ArrowColumn) -> Array | None:
    return None if array.null_count == 0 else np.asarray(array.is_valid())


def _raw(array: ArrowArray) -> Array:
    """The numbers of a fixed-width array as a view of its memory, whatever lies in the NULL slots."""
    buffers = [None, array.buffers()[1]]
    bare = pa.Array.from_buffers(array.type, len(array), buffers, null_count=0, offset=array.offset)
    found: Array = bare.to_numpy(zero_copy_only=True)
    return found


def _read_plain(array: ArrowArray, kind: Kind) -> Vector:
    """Everything but strings."""
    valid, arrow_type = _mask(array), array.type
    if types.is_boolean(arrow_type):
        return Vector(kind, array.fill_null(False).to_numpy(zero_copy_only=False), valid)
    if types.is_floating(arrow_type):
        return known_doubles(_raw(array).astype(np.float64, copy=False), valid)
    if types.is_decimal(arrow_type):
        return _read_decimals(array, valid, kind)
    if types.is_integer(arrow_type):
        values = _integers(array, valid)
    else:
        values = _times(array)
    return Vector(kind, as_float(values) if kind is Kind.FLOAT else values, valid)


def _integers(array: ArrowArray, valid: Array | None) -> Array:
    raw = _raw(array)
    if raw.dtype == np.uint64 and len(raw) and int(raw.max()) >= 2**63:
        return narrow(raw.astype(object), valid)
    return raw.astype(np.int64, copy=False)


def _read_decimals(array: ArrowArray, valid: Array | None, kind: Kind) -> Vector:
    """Units of the last digit; integers where there is no digit after the point."""
    units, scale = read_units(array), array.type.scale
    if kind is Kind.FLOAT:
        return known_doubles(as_doubles(rescaled(units, max(-scale, 0)), max(scale, 0)), valid)
    return Vector(kind, rescaled(units, max(-scale, 0)), valid, scale=max(scale, 0))


def _times(array: ArrowArray) -> Array:
    """Times and durations as whole microseconds."""
    arrow_type = array.type
    zone = arrow_type.tz if types.is_timestamp(arrow_type) else None
    try:
        whole = array.cast(pa.duration("us") if types.is_duration(arrow_type) else pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        if getattr(arrow_type, "unit", None) == "ns":
            raise DataError(
                f"a column of {arrow_type} holds times that are not whole microseconds",
                hint="times are kept in microseconds: round the column first, for instance to timestamp[us]",
            ) from None
        raise DataError(f"a column of {arrow_type} holds times beyond the range of 64-bit microseconds") from None
    return _raw(whole.view(pa.int64()))


def _read_strings(array: ArrowColumn, kind: Kind, threads: int, coder: Coder | None) -> Vector:
    if types.is_dictionary(array.type):
        return _read_dictionaries(array, kind)
    if types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    codes, dictionary = encode_strings(array, threads, coder)
    return Vector(kind, codes, _mask(array), dictionary)


def _read_dictionaries(array: ArrowColumn, kind: Kind) -> Vector:
    """Only the dictionaries are hashed: they may repeat values, hold NULL, and differ from chunk to chunk."""
    parts = chunks(array)
    texts = pa.chunked_array([part.dictionary for part in parts], array.type.value_type).cast(pa.large_string())
    ranks, dictionary = encode_strings(texts)
    # One entry more, for NULL and for the chunks whose own dictionary is empty.
    ranks = np.append(ranks, 0)
    known = np.append(texts.is_valid().to_numpy(), False)
    places, first = [], 0
    for part in parts:
        places.append(pc.add(part.indices.cast(pa.int64()), first).fill_null(len(texts)).to_numpy())
        first += len(part.dictionary)
    place = np.concatenate(places)
    valid = known[place]
    return Vector(kind, ranks[place], None if valid.all() else valid, dictionary)


# ---------------------------------------------------------------------------------------------------- writing


def to_arrow(vector: Vector, arrow_type: pa.DataType | None = None) -> ArrowArray:
    """The vector as an Arrow array of this type; None: int64 (wider where needed), double, bool, string or null.

    Times and durations are ticks: int64 where no type is given, microseconds where the type is a timestamp, a date
    or a duration.
    """
    try:
        return _write(vector, arrow_type)
    except pa.ArrowInvalid as problem:
        raise DataError(
            f"a result of kind {vector.kind} does not fit a column of {arrow_type}: {problem}",
            hint="use a wider type",
        ) from problem


def _write(vector: Vector, arrow_type: pa.DataType | None) -> ArrowArray:
    if vector.kind is Kind.NULL or vector.kind is Kind.OTHER:
        empty: ArrowArray = pa.nulls(len(vector))
        return empty if arrow_type is None else empty.cast(arrow_type)
    if vector.dictionary is not None:
        return _write_strings(vector, arrow_type or pa.string())
    plain: ArrowArray
    if vector.kind is Kind.DECIMAL and vector.values.dtype != np.float64:
        plain = write_units(vector.values, vector.valid, vector.scale)
    elif vector.values.dtype == np.object_:
        plain = exact_array(vector.to_list())
    else:
        plain = pa.array(vector.values, mask=None if vector.valid is None else ~vector.valid)
    if arrow_type is None or plain.type == arrow_type:
        return plain
    if types.is_timestamp(arrow_type) or types.is_date(arrow_type):
        zone = arrow_type.tz if types.is_timestamp(arrow_type) else None
        plain = plain.cast(pa.timestamp("us", zone)) if vector.kind is Kind.TIME else plain
    elif types.is_duration(arrow_type) and vector.kind is Kind.DURATION:
        plain = plain.cast(pa.duration("us"))
    if types.is_dictionary(arrow_type):
        encoded = plain.cast(arrow_type.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(arrow_type.index_type), encoded.dictionary)
    return plain.cast(arrow_type, safe=not types.is_floating(arrow_type))


def _write_strings(vector: Vector, arrow_type: pa.DataType) -> ArrowArray:
    codes: ArrowArray = pa.array(vector.values, mask=None if vector.valid is None else ~vector.valid)
    texts: ArrowArray = pa.array(NO_TEXT if vector.dictionary is None else vector.dictionary, pa.large_string())
    if types.is_dictionary(arrow_type):
        return pa.DictionaryArray.from_arrays(codes, texts).cast(arrow_type)
    return pc.take(texts.cast(arrow_type), codes)
