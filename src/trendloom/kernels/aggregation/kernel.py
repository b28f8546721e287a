"""The aggregation kernel under the contract every kernel keeps: start, step, finish.

A step takes the events that arrived, in any order, and a watermark: from now on nothing earlier arrives. What lies
before it is certain. Where events are matrices they are multiplied into one piece per key and pane and forgotten, so
that the state does not grow with the stream; other grains keep the events of windows that are still open. Windows
that have closed are given out. Keys are numbered by whoever calls, the same in every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trendloom.errors import DataError
from trendloom.kernels.aggregation import pieces as stored
from trendloom.kernels.aggregation.aggregate import Totals, aggregate
from trendloom.kernels.aggregation.pieces import Pieces
from trendloom.kernels.aggregation.spec import Aggregation
from trendloom.kernels.columns.block import Block, join_blocks
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class AggregationKernel:
    """What to add up, and in which numbers."""

    spec: Aggregation
    numeric: str


@dataclass(frozen=True, eq=False)
class State:
    """`held`: events that are not certain yet, or still needed. `before`: windows that end here or earlier are out."""

    kernel: AggregationKernel
    held: Block | None = None
    pieces: Pieces | None = None
    columns: dict[str, Any] = field(default_factory=dict)  # how MIN and MAX come back from pieces
    before: int | None = None


def start(kernel: AggregationKernel) -> State:
    return State(kernel)


def step(state: State, block: Block, watermark: int | None) -> tuple[Iterator[Totals], State]:
    """Take a block; give out the windows that end at the watermark or before it."""
    held = block if state.held is None else join_blocks(state.held, block)
    state = replace(state, held=held)
    if watermark is None:
        return iter(()), state
    if state.kernel.spec.algebra and state.kernel.spec.pivot is None:
        state = _reduced(state, held, held.time < watermark)
    found = list(_closed(state, watermark))
    return iter(found), _forget(state, watermark)


def finish(state: State) -> Iterator[Totals]:
    """All windows that are still open."""
    if state.pieces is not None and state.held is not None:
        state = _reduced(state, state.held, np.ones(len(state.held), np.bool_))
    return _closed(state, None)


def _reduced(state: State, held: Block, ready: Array) -> State:
    """Events that are certain become pieces."""
    if not ready.any():
        return state
    kernel = state.kernel
    some = held.only(ready)
    found = stored.reduce_block(kernel.spec, some, kernel.numeric)
    if found is None:  # values that mean nothing outside of their block: keep the events
        if state.pieces is not None:
            raise DataError("MIN or MAX of the least or greatest 64-bit integer cannot be taken step by step")
        return state
    pieces = found if state.pieces is None else stored.join([state.pieces, found])
    pieces = stored.compact(kernel.spec, kernel.numeric, pieces)
    columns = stored.sortables(kernel.spec, some)
    return replace(state, held=held.only(~ready), pieces=pieces, columns=columns)


def _closed(state: State, watermark: int | None) -> Iterator[Totals]:
    """Results of windows that have ended and are not out yet; `watermark` None: of all that are left."""
    kernel = state.kernel
    window = kernel.spec.detection.window
    if watermark is not None and window.within is None:
        return
    if state.pieces is not None:
        parts: Iterator[Totals] = iter(
            [stored.results(kernel.spec, kernel.numeric, state.pieces, state.columns)] if len(state.pieces) else []
        )
    else:
        parts = aggregate(kernel.spec, state.held, kernel.numeric) if state.held is not None else iter(())
    for totals in parts:
        end = totals.start + (window.within or 0)
        rows = np.ones(len(totals), np.bool_) if watermark is None else end <= watermark
        if state.before is not None:
            rows &= end > state.before
        yield totals.take(np.flatnonzero(rows))


def _forget(state: State, watermark: int) -> State:
    """Without what no open window holds."""
    window = state.kernel.spec.detection.window
    if window.within is None or window.slide is None:
        return state
    first = _first_open(window, watermark)
    pane = stored.pane_of(window)
    pieces, held = state.pieces, state.held
    if pieces is not None and pane is not None:
        pieces = pieces.take(np.flatnonzero(pieces.pane * pane >= first))
    if held is not None:
        held = held.only(held.time >= first)
    return replace(state, pieces=pieces, held=held, before=watermark)


def _first_open(window: Window, watermark: int) -> int:
    """The start of the first window that ends after the watermark."""
    assert window.within is not None
    assert window.slide is not None
    return ((watermark - window.within) // window.slide + 1) * window.slide
