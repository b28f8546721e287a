"""The detection kernel under the contract every kernel keeps: start, step, finish, dump, load.

In batch the engine steps once with all events and no watermark, then finishes. A state holds the events that were not
yet given to the search; it can be dumped as versioned Arrow at any time and loaded elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import DataError
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.enumerate import enumerate_matches
from trendloom.kernels.detection.matches import Matches
from trendloom.kernels.detection.runs import follow_runs
from trendloom.kernels.detection.spec import Detection, Pair
from trendloom.model.schema import Kind

VERSION = 2


@dataclass(frozen=True)
class DetectionKernel:
    """What to find and how: `pairs` is not None where runs can be followed by a table of successors."""

    detection: Detection
    pairs: tuple[Pair, ...] | None


@dataclass(frozen=True, eq=False)
class State:
    kernel: DetectionKernel
    block: Block | None


def start(kernel: DetectionKernel) -> State:
    return State(kernel, None)


def step(state: State, block: Block, watermark: int | None) -> tuple[Iterator[Matches], State]:
    """Take a block; without a watermark nothing is certain before the end, so nothing is given out yet."""
    if state.block is not None:
        raise DataError("this kernel takes one block per state", hint="sort all events into one block")
    return iter(()), State(state.kernel, block)


def finish(state: State) -> Iterator[Matches]:
    """All matches of the events so far, in bounded chunks."""
    if state.block is None:
        return iter(())
    kernel = state.kernel
    if kernel.pairs is None:
        return enumerate_matches(kernel.detection, state.block)
    return follow_runs(kernel.detection, kernel.pairs, state.block)


def dump(state: State) -> bytes:
    """The events of a state as one Arrow stream, with the version of this format."""
    block = state.block
    arrays: dict[str, Any] = {}
    meta: dict[str, Any] = {"version": VERSION, "empty": block is None, "columns": {}, "dictionaries": {}}
    if block is not None:
        arrays = {"time": block.time, "row": block.row, "key": block.key}
        meta["keys"], meta["bits"] = block.keys, block.bits
        arrays |= {f"fits {number}": words for number, words in enumerate(block.fits)}
        for name, vector in block.columns.items():
            arrays[f"value {name}"] = (
                [str(v) for v in vector.values] if vector.values.dtype == object else vector.values
            )
            meta["columns"][name] = [vector.kind.name, vector.values.dtype == object]
            if vector.valid is not None:
                arrays[f"known {name}"] = vector.valid
            if vector.dictionary is not None:
                meta["dictionaries"][name] = vector.dictionary.tolist()
    table = pa.table({name: pa.array(values) for name, values in arrays.items()})
    table = table.replace_schema_metadata({"trendloom": json.dumps(meta)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def load(kernel: DetectionKernel, content: bytes) -> State:
    """The state that `dump` wrote; an unknown version is refused."""
    table = pa.ipc.open_stream(content).read_all()
    meta = json.loads(table.schema.metadata[b"trendloom"])
    if meta["version"] != VERSION:
        raise DataError(f"state of version {meta['version']} cannot be read by version {VERSION}")
    if meta["empty"]:
        return State(kernel, None)
    arrays = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    columns = {name: _vector(name, kind, big, arrays, meta) for name, (kind, big) in meta["columns"].items()}
    key_starts = np.searchsorted(arrays["key"], np.arange(meta["keys"] + 1))
    fits = tuple(words for name, words in arrays.items() if name.startswith("fits "))
    block = Block(key_starts, arrays["time"], arrays["row"], columns, fits, tuple(meta["bits"]))
    return State(kernel, block)


def _vector(name: str, kind: str, big: bool, arrays: dict[str, Any], meta: dict[str, Any]) -> Vector:
    values = arrays[f"value {name}"]
    if big:
        values = np.array([int(value) for value in values], dtype=object)
    dictionary = meta["dictionaries"].get(name)
    texts = None if dictionary is None else np.array(dictionary, dtype=object)
    return Vector(Kind[kind], values, arrays.get(f"known {name}"), texts)
