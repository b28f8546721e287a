"""How likely signatures are matches, and in which times: doubles with a bound on their error, exact where it matters.

Doubles take products and sums of probabilities only, so what they lose is a rounding per step, and the steps are
counted: the confidence is right up to `roundings · 2^-53`, relatively. What is closer than that to the threshold is
computed again, with fractions, and so is what multiplies numbers too small for doubles. Signatures of the same shape
(intervals, masses and rivals relative to the first point) are computed exactly once.

Cost: see `weigh`; fractions take a thousand times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.jit.interpreted import interpret
from trendloom.kernels.uncertain.confidence.in_order import FAR, exact_masses, masses_of
from trendloom.kernels.uncertain.confidence.quiet_gaps import MOST_AT_ONCE, RivalRows
from trendloom.kernels.uncertain.confidence.weigh import DELICATE, TOO_MANY, SignatureRows, WeighedSignatures, weigh
from trendloom.kernels.uncertain.signatures import Rivals, Signatures

SHAPES = 1 << 14
"""Shapes whose exact confidences are remembered."""

Shape = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class MatchConfidence:
    """How likely matches are, and the least and latest times (ticks) of their events in all worlds where they match."""

    confidence: Array
    low: Array
    high: Array


def confidences_of(
    signatures: Signatures, block: IntervalBlock, threshold: Fraction | None
) -> tuple[MatchConfidence, Array]:
    """The confidences of all signatures, and which are kept: those that match in some world, at least so likely.

    One that is not kept has a confidence as well, but times only if it matches in some world.
    """
    weights = _in_doubles(signatures, block)
    confidence, low, high = weights.confidence, weights.times[:, 0], weights.times[:, 1]
    error = rounding_error(weights.roundings)
    kept = confidence > 0
    again = weights.outcome == DELICATE
    if threshold is not None and threshold > 0:
        bar = float(threshold)
        kept &= confidence >= bar
        again |= (confidence > 0) & (np.abs(confidence - bar) <= 2 * error * bar + 2.0**-52 * bar)
    for number in np.flatnonzero(again):
        exact, low[number], high[number] = exact_confidence(signatures, block, int(number))
        confidence[number] = float(exact)
        kept[number] = exact > 0 and (threshold is None or exact >= threshold)
    return MatchConfidence(np.minimum(confidence, 1.0), low * block.grain, high * block.grain), kept


def rounding_error(roundings: Array) -> Array:
    """How far a confidence can be from the exact one, relatively: 1% for the products of errors."""
    return 1.01 * 2.0**-53 * roundings


def exact_confidences(signatures: Signatures, block: IntervalBlock) -> list[tuple[Fraction, int, int]]:
    """The exact confidence of each signature, and the first and last time (ticks) it covers."""
    found = [exact_confidence(signatures, block, number) for number in range(len(signatures))]
    return [(confidence, low * block.grain, high * block.grain) for confidence, low, high in found]


def exact_confidence(signatures: Signatures, block: IntervalBlock, number: int) -> tuple[Fraction, int, int]:
    """The exact confidence of one of them, and the first and last point it covers."""
    first = int(block.first_point[signatures.events[signatures.offsets[number]]])
    confidence, low, high = _of_shape(_shape_of(signatures, block, number, first))
    return confidence, low + first, high + first


def _in_doubles(signatures: Signatures, block: IntervalBlock) -> WeighedSignatures:
    points = masses_of(block)
    window = np.zeros((0, 2), np.int64) if signatures.window is None else signatures.window
    rows = SignatureRows(
        np.ascontiguousarray(signatures.offsets, np.int64),
        np.ascontiguousarray(signatures.events, np.int64),
        np.ascontiguousarray(window, np.int64),
        FAR if signatures.span is None else int(signatures.span),
    )
    weights = weigh(points, rows, _rival_rows(signatures.rivals), block.most_points, _run)
    if (weights.outcome == TOO_MANY).any():
        raise _too_many()
    return weights


def _too_many() -> RunError:
    return RunError(
        f"more than {MOST_AT_ONCE} events that may lie in several gaps of one match are possible at the same point of "
        "time: the confidence of the match would take too long",
        hint=f"a coarser grain ({option('time_grain')}), shorter intervals, or SEMANTICS skip-till-any-match",
    )


def _run(kernel: Callable[..., Any], *arguments: Any) -> None:
    kernel(*arguments)


def _rival_rows(rivals: Rivals | None) -> RivalRows | None:
    if rivals is None or len(rivals.event) == 0:
        return None
    columns = rivals.event, rivals.gap, rivals.forbidden, rivals.excused_by, rivals.excuses
    rows = np.column_stack([column.astype(np.int64) for column in columns])
    return RivalRows(np.ascontiguousarray(rivals.offsets, np.int64), rows)


# ------------------------------------------------------------------------------------------------ exactly


def _shape_of(signatures: Signatures, block: IntervalBlock, number: int, origin: int) -> Shape:
    """All that a confidence depends on, in points from an origin: equal shapes are equally likely."""
    bound = signatures.events[signatures.offsets[number] : signatures.offsets[number + 1]].tolist()
    rows: list[tuple[int, int, bool, int, int]] = []
    events = list(bound)
    if signatures.rivals is not None:
        rivals = signatures.rivals
        for row in range(int(rivals.offsets[number]), int(rivals.offsets[number + 1])):
            if len(events) == len(bound) or events[-1] != int(rivals.event[row]):
                events.append(int(rivals.event[row]))
            bits = int(rivals.excused_by[row]), int(rivals.excuses[row])
            rows.append((len(events) - 1, int(rivals.gap[row]), bool(rivals.forbidden[row]), *bits))
    window = () if signatures.window is None else tuple(int(end) - origin for end in signatures.window[number])
    intervals = tuple(_interval(block, event, origin) for event in events)
    return len(bound), intervals, tuple(rows), window, signatures.span


def _interval(block: IntervalBlock, event: int, origin: int) -> tuple[int, int, tuple[float, ...]]:
    masses: tuple[float, ...] = ()
    if block.masses is not None:
        begin, end = block.masses.offsets[event], block.masses.offsets[event + 1]
        masses = tuple(block.masses.values[begin:end].tolist())
    return int(block.first_point[event]) - origin, int(block.last_point[event]) - origin, masses


@lru_cache(maxsize=SHAPES)
def _of_shape(shape: Shape) -> tuple[Fraction, int, int]:
    length, intervals, rows, window, span = shape
    columns = np.array(rows, np.int64).reshape(len(rows), 5)
    rivals = RivalRows(np.array([0, len(rows)]), columns) if rows else None
    signatures = SignatureRows(
        np.array([0, length]),
        np.arange(length),
        np.array([window] if window else [], np.int64).reshape(-1, 2),
        FAR if span is None else span,
    )
    width = max(last - first + 1 for first, last, _ in intervals)
    found = weigh(exact_masses(intervals), signatures, rivals, width, interpret)
    if found.outcome[0] == TOO_MANY:
        raise _too_many()
    low, high = found.times[0].tolist()
    return Fraction(found.confidence[0]), low, high
