"""How likely signatures are matches, and in which times: exact dynamic programming over points, in doubles.

Each signature is weighed by the plainest sum that gives its confidence: `in_order` without rivals, `quiet_gaps` with
rivals that can lie in one gap each, else `sweep`. What depends on the first or the last event's time is summed over
boxes where these are fixed: a span that binds, for each start that it binds and once for all others; gaps at the ends
under a bare WITHIN, for each start, and for each end as well if a rival before the first event also matters elsewhere.

Doubles take products and sums of probabilities only, so what they lose is a rounding per step, and the steps are
counted: the confidence is right up to `roundings · 2^-53`, relatively. What is closer than that to the threshold is
computed again, with fractions, and so is what multiplies numbers too small for doubles. Signatures of the same shape
(intervals, masses and rivals relative to the first point) are computed exactly once.

Cost: that of the sum, times the number of boxes. Least starts are found by trying one after the other where a signature
has rivals, mostly once. Fractions take a thousand times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.jit.interpreted import interpret
from trendloom.kernels.uncertain.confidence.in_order import (
    CALLED,
    FAR,
    HIGH,
    LOW,
    BoxedSignature,
    PointMasses,
    TimeLimits,
    exact_masses,
    first_point,
    last_point,
    mass_at,
    mass_in_order,
    mass_of_sums,
    masses_of,
    narrow,
    tighten,
)
from trendloom.kernels.uncertain.confidence.quiet_gaps import (
    BITS,
    FLAGS,
    KIND,
    MOST_AT_ONCE,
    NEEDS_END,
    NEEDS_START,
    PLAIN,
    RIVALS,
    ContestedSignature,
    RivalTable,
    Workspace,
    empty_rival_table,
    rival_event,
    sort_rivals,
    weigh_quiet,
    workspace_for,
)
from trendloom.kernels.uncertain.confidence.sweep import weigh_sweep
from trendloom.kernels.uncertain.signatures import Rivals, Signatures

SHAPES = 1 << 14
"""Shapes whose exact confidences are cached."""
TINY = -900
"""The power of two below which a product of probabilities is left to fractions: doubles end at -1022."""

DONE, DELICATE, TO_SWEEP, TOO_MANY = range(4)
"""What came of a signature: a number; numbers too small for doubles; it has tracked rivals; more than there may be."""

Shape = tuple[int, tuple[Any, ...], tuple[tuple[int, ...], ...], tuple[int, ...], int | None]
"""The number of events, their intervals and those of rivals, the rows of rivals, the window and the span."""


@dataclass(frozen=True, eq=False)
class MatchConfidence:
    """How likely matches are, and the least and latest times (ticks) of their events in all worlds where they match."""

    confidence: Array
    low: Array
    high: Array


class SignatureRows(NamedTuple):
    """`Signatures` for compiled code; `window` is empty if windows do not slide, `span` is `FAR` if there is none."""

    offsets: Array
    events: Array
    window: Array
    span: int


class WeighedSignatures(NamedTuple):
    """Of each signature: its confidence; the first and the last point it covers (`times`); how often its confidence was
    rounded at most; and what came of it.
    """

    confidence: Array
    times: Array
    roundings: Array
    outcome: Array


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


def exact_confidence(signatures: Signatures, block: IntervalBlock, number: int) -> tuple[Fraction, int, int]:
    """The exact confidence of one of them, and the first and last point it covers."""
    first = int(block.first_point[signatures.matches.first[number]])
    confidence, low, high = _of_shape(_shape_of(signatures, block, number, first))
    return confidence, low + first, high + first


def _in_doubles(signatures: Signatures, block: IntervalBlock) -> WeighedSignatures:
    window = np.zeros((0, 2), np.int64) if signatures.window is None else signatures.window
    rows = SignatureRows(
        np.ascontiguousarray(signatures.matches.offsets, np.int64),
        np.ascontiguousarray(signatures.matches.events, np.int64),
        np.ascontiguousarray(window, np.int64),
        FAR if signatures.span is None else int(signatures.span),
    )
    rivals = signatures.rivals if signatures.rivals is not None and len(signatures.rivals.rows) else None
    return _weigh(masses_of(block), rows, rivals, block.most_points)


def _weigh(points: PointMasses, signatures: SignatureRows, rivals: Rivals | None, width: int) -> WeighedSignatures:
    """All of them, with numbers as those of the points; `width`: the most points of an event."""
    count, kind = len(signatures.offsets) - 1, points.share.dtype
    weights = WeighedSignatures(
        np.zeros(count, kind), np.zeros((count, 2), np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    )
    longest = int(np.diff(signatures.offsets).max(initial=0))
    boxes = np.zeros((2, longest, 2), np.int64)
    if rivals is None:
        vectors, sums = np.zeros((2, width), kind), np.zeros((longest, width), kind)
        _run(_weigh_orders, points, signatures, boxes, vectors, sums, weights)
        return weights
    space = workspace_for(width, longest - 1, kind)
    table = empty_rival_table(int(np.diff(rivals.offsets).max(initial=0)), longest)
    _run(_weigh_rivals, points, signatures, rivals, boxes, space, table, weights)
    swept = np.flatnonzero(weights.outcome == TO_SWEEP)
    if len(swept):  # apart, so that sweeps are compiled only if needed
        _run(_weigh_sweeps, points, signatures, rivals, boxes, space, table, swept, weights)
    if (weights.outcome == TOO_MANY).any():
        raise RunError(
            f"more than {MOST_AT_ONCE} events that may lie in several gaps of one match are possible at the same point "
            "of time: the confidence of the match would take too long",
            hint=f"a coarser grain ({option('time_grain')}), shorter intervals, or SEMANTICS skip-till-any-match",
        )
    return weights


def _run(kernel: Any, points: PointMasses, *arguments: Any) -> None:
    """Compiled for doubles, interpreted for fractions."""
    if points.share.dtype == object:
        interpret(kernel, points, *arguments)
    else:
        kernel(points, *arguments)


# ------------------------------------------------------------------------------------------------ exactly


def _shape_of(signatures: Signatures, block: IntervalBlock, number: int, origin: int) -> Shape:
    """All that a confidence depends on, in points from an origin: equal shapes are equally likely."""
    bound = signatures.matches.part(number, number + 1).events.tolist()
    events, rows = list(bound), []
    if signatures.rivals is not None:
        own = slice(*signatures.rivals.offsets[number : number + 2])
        for event, *row in signatures.rivals.rows[own].tolist():
            if len(events) == len(bound) or events[-1] != event:
                events.append(event)
            rows.append((len(events) - 1, *row))
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
    rivals = Rivals(np.array([0, len(rows)]), np.array(rows, np.int64)) if rows else None
    signatures = SignatureRows(
        np.array([0, length]),
        np.arange(length),
        np.array([window] if window else [], np.int64).reshape(-1, 2),
        FAR if span is None else span,
    )
    width = max(last - first + 1 for first, last, _ in intervals)
    found = _weigh(exact_masses(intervals), signatures, rivals, width)
    low, high = found.times[0].tolist()
    return Fraction(found.confidence[0]), low, high


# ------------------------------------------------------------------------------------------------ compiled


@njit(**LEAN)
def _weigh_orders(
    points: PointMasses, signatures: SignatureRows, boxes: Array, vectors: Array, sums: Array,
    weights: WeighedSignatures,
) -> None:  # fmt: skip
    """Those without rivals."""
    summed = -1  # whose sums these are
    for number in range(len(signatures.offsets) - 1):
        boxed = _boxed(points, signatures, boxes, number)
        if not _frame(boxed):
            continue
        if _is_cut(boxed) or _is_certain(boxed):
            _weigh_order(boxed, vectors[0], vectors[1], weights, number)
        elif _is_fit(boxed, weights, number):
            _set_order(boxed, mass_of_sums(boxed, _shared(signatures, summed, number), sums), weights, number)
            summed = number


@njit(**BORROWED)
def _is_cut(boxed: BoxedSignature) -> bool:
    """Whether the span binds: the first event may be so early, and the last so late, that they are too far apart."""
    bounds, limits, events = boxed.points.bounds, boxed.limits, boxed.events
    first, last = events[0], events[len(events) - 1]
    return min(bounds[last, HIGH], limits.last) - max(bounds[first, LOW], limits.first) >= limits.span


@njit(**BORROWED)
def _shared(signatures: SignatureRows, one: int, other: int) -> int:
    """With how many equal events two signatures begin; none if they are in different windows, or there is no first."""
    if one < 0:
        return 0
    window = signatures.window
    if len(window) and (window[one, 0] != window[other, 0] or window[one, 1] != window[other, 1]):
        return 0
    offsets, events, count = signatures.offsets, signatures.events, 0
    most = min(offsets[one + 1] - offsets[one], offsets[other + 1] - offsets[other])
    while count < most and events[offsets[one] + count] == events[offsets[other] + count]:
        count += 1
    return count


@njit(**BORROWED)
def _set_order(boxed: BoxedSignature, mass: Any, weights: WeighedSignatures, number: int) -> None:
    """The confidence where no span binds; a first event that begins earlier is in order too."""
    points, events, _, whole, _ = boxed
    last = len(events) - 1
    if mass > 0:
        weights.confidence[number] = mass
        weights.times[number, LOW] = first_point(points, events[0], whole[0, LOW], whole[0, HIGH])
        weights.times[number, HIGH] = last_point(points, events[last], whole[last, LOW], whole[last, HIGH])


@njit(**LEAN)
def _weigh_rivals(
    points: PointMasses, signatures: SignatureRows, rivals: Rivals, boxes: Array, space: Workspace, table: RivalTable,
    weights: WeighedSignatures,
) -> None:  # fmt: skip
    """Those with rivals, up to sweeps."""
    for number in range(len(signatures.offsets) - 1):
        boxed = _boxed(points, signatures, boxes, number)
        if not _frame(boxed):
            continue
        contested = ContestedSignature(boxed, number, rivals, table)
        if not sort_rivals(contested):
            _weigh_order(boxed, space.vector, space.spare, weights, number)
            continue
        _note_precision(contested, weights)
        if weights.outcome[number] == DONE:
            _sum_boxes(weigh_quiet, contested, space, weights)


@njit(**LEAN)
def _weigh_sweeps(
    points: PointMasses, signatures: SignatureRows, rivals: Rivals, boxes: Array, space: Workspace, table: RivalTable,
    numbers: Array, weights: WeighedSignatures,
) -> None:  # fmt: skip
    """Those of some numbers, by sweeps."""
    for number in numbers:
        boxed = _boxed(points, signatures, boxes, number)
        _frame(boxed)
        contested = ContestedSignature(boxed, number, rivals, table)
        sort_rivals(contested)
        weights.outcome[number] = DONE
        _sum_boxes(weigh_sweep, contested, space, weights)


@njit(**BORROWED)
def _boxed(points: PointMasses, signatures: SignatureRows, boxes: Array, number: int) -> BoxedSignature:
    """A signature with space for its boxes."""
    span, events = signatures.span, signatures.events[signatures.offsets[number] : signatures.offsets[number + 1]]
    limits = TimeLimits(span, -FAR, FAR, span < FAR)
    if len(signatures.window):
        limits = TimeLimits(span, signatures.window[number, 0], signatures.window[number, 1], False)
    return BoxedSignature(points, events, limits, boxes[0], boxes[1])


@njit(**BORROWED)
def _frame(boxed: BoxedSignature) -> bool:
    """Set where the events of a signature can lie at all; returns whether it is possible."""
    points, events, limits, whole, _ = boxed
    for j in range(len(events)):
        whole[j, LOW] = max(points.bounds[events[j], LOW], limits.first)
        whole[j, HIGH] = min(points.bounds[events[j], HIGH], limits.last)
    return tighten(whole, len(events), limits.span)


@njit(**CALLED)
def _weigh_order(boxed: BoxedSignature, vector: Array, spare: Array, weights: WeighedSignatures, number: int) -> None:
    """Confidence, least start and greatest end without rivals. What begins earlier or ends later is in order too."""
    points, events, limits, whole, box = boxed
    last, span = len(events) - 1, limits.span
    if _is_certain(boxed):
        weights.confidence[number] = 1
        weights.times[number, LOW], weights.times[number, HIGH] = whole[0, LOW], whole[last, HIGH]
        return
    if not _is_fit(boxed, weights, number):
        return
    total, low, high = points.share[0] * 0, FAR, -FAR
    begin = whole[0, LOW]
    while begin <= whole[0, HIGH]:
        end = begin if whole[last, HIGH] - begin >= span else whole[0, HIGH]
        if narrow(boxed, (begin, end), (-FAR, begin + span - 1)):
            mass = mass_in_order(boxed, vector, spare)
            if mass > 0:
                total += mass
                low = min(low, first_point(points, events[0], box[0, LOW], box[0, HIGH]))
                high = max(high, last_point(points, events[last], box[last, LOW], box[last, HIGH]))
        begin = end + 1
    if total > 0:
        weights.confidence[number] = total
        weights.times[number, LOW], weights.times[number, HIGH] = low, high


@njit(**BORROWED)
def _is_certain(boxed: BoxedSignature) -> bool:
    """Whether events are in order in all worlds, and in their window and span."""
    points, events, limits, whole, _ = boxed
    last = len(events) - 1
    for j in range(last + 1):
        event = events[j]
        if whole[j, LOW] != points.bounds[event, LOW] or whole[j, HIGH] != points.bounds[event, HIGH]:
            return False
        if j > 0 and whole[j, LOW] <= whole[j - 1, HIGH]:
            return False
    return whole[last, HIGH] - whole[0, LOW] < limits.span


@njit(**BORROWED)
def _is_fit(boxed: BoxedSignature, weights: WeighedSignatures, number: int) -> bool:
    """Note how many roundings lie between the masses of events and a confidence at most. Returns whether doubles do.

    An event's masses are summed and divided, its vector is summed and multiplied, and so are boxes: at most four
    roundings per point and four per event.
    """
    points, roundings, least = boxed.points, 8, 0.0
    for event in boxed.events:
        roundings += 4 * (points.bounds[event, HIGH] - points.bounds[event, LOW] + 2)
        least += points.least[event]
    weights.roundings[number] = roundings
    weights.outcome[number] = DELICATE if least < TINY else DONE
    return least >= TINY


@njit(**CALLED)
def _note_precision(contested: ContestedSignature, weights: WeighedSignatures) -> None:
    """The same with rivals: each is rounded once more when it is multiplied into all else."""
    (points, events, _, _, _), number, _, table = contested
    _is_fit(contested.boxed, weights, number)
    roundings, least = len(events) * table.tally[FLAGS], 0.0
    for event in events:
        least += points.least[event]
    for rival in range(table.tally[RIVALS]):
        if table.rivals[rival, KIND] >= PLAIN:
            event = rival_event(contested, rival)
            roundings += 4 * (points.bounds[event, HIGH] - points.bounds[event, LOW] + 3)
            least += points.least[event]
    weights.roundings[number] += roundings
    if table.tally[BITS] > MOST_AT_ONCE:
        weights.outcome[number] = TOO_MANY
    elif least < TINY:
        weights.outcome[number] = DELICATE
    elif table.tally[BITS] > 0:
        weights.outcome[number] = TO_SWEEP


@njit(**CALLED, cache=False)
def _sum_boxes(box_mass: Any, contested: ContestedSignature, space: Workspace, weights: WeighedSignatures) -> None:
    """Confidence, least start and greatest end with rivals. `box_mass` weighs a box."""
    (points, events, limits, whole, _), number, _, table = contested
    last, tally = len(events) - 1, table.tally
    space.filled[:] = False
    total, low, high = points.share[0] * 0, FAR, -FAR
    begin = whole[0, LOW]
    while begin <= whole[0, HIGH]:
        alone = tally[NEEDS_START] != 0 or whole[last, HIGH] - begin >= limits.span
        starts = begin, (begin if alone else whole[0, HIGH])
        first_end, last_end = whole[last, LOW], min(whole[last, HIGH], begin + limits.span - 1)
        while first_end <= last_end:
            ends = first_end, (first_end if tally[NEEDS_END] != 0 else last_end)
            if narrow(contested.boxed, starts, ends):
                mass, latest = box_mass(contested, space)
                if mass > 0:
                    total += mass
                    high = max(high, latest)
                    if starts[0] < low:
                        low = min(low, _least_start(box_mass, contested, space, starts, ends))
            first_end = ends[1] + 1
        begin = starts[1] + 1
    if total > 0:
        weights.confidence[number] = total
        weights.times[number, LOW], weights.times[number, HIGH] = low, high


@njit(**CALLED, cache=False)
def _least_start(
    box_mass: Any, contested: ContestedSignature, space: Workspace, starts: tuple[int, int], ends: tuple[int, int]
) -> int:
    """The least start in a box of weight."""
    boxed = contested.boxed
    for start in range(starts[0], starts[1]):
        if mass_at(boxed.points, boxed.events[0], start) > 0 and narrow(boxed, (start, start), ends):
            mass, _ = box_mass(contested, space)
            if mass > 0:
                return start
    return starts[1]
