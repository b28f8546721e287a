"""The confidences and time ranges of many signatures, each by the plainest sum that gives it.

What depends on the first or the last event's time is summed over boxes where these are fixed: a span that binds, for
each start that it binds and once for all others; gaps at the ends under a bare WITHIN, for each start, and for each end
as well if a rival before the first event also matters elsewhere.

Cost: see `in_order`, `quiet_gaps`, `sweep`; times the number of boxes. Least starts are found by trying one after the
other where rivals are about, mostly once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.uncertain.confidence.in_order import (
    FAR,
    HIGH,
    LOW,
    PointMasses,
    TimeLimits,
    first_point,
    last_point,
    mass_at,
    mass_in_order,
    mass_of_sums,
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
    BoxedSignature,
    RivalRows,
    RivalTable,
    Workspace,
    empty_rival_table,
    rival_event,
    sort_rivals,
    weigh_quiet,
    workspace_for,
)
from trendloom.kernels.uncertain.confidence.sweep import weigh_sweep

TINY = -900
"""The power of two below which a product of probabilities is left to fractions: doubles end at -1022."""

DONE, DELICATE, TO_SWEEP, TOO_MANY = range(4)
"""What came of a signature: a number; numbers too small for doubles; it has tracked rivals; more than there may be."""


class SignatureRows(NamedTuple):
    """Signatures as `Signatures` has them; `window` has no rows if there are none. `span`: `FAR` if there is none."""

    offsets: Array
    events: Array
    window: Array
    span: int


class WeighedSignatures(NamedTuple):
    """Of each signature: its confidence; the first and the last point it covers (`times`); `notes`: how often its
    confidence was rounded at most, and what came of it.
    """

    confidence: Array
    times: Array
    notes: Array

    @property
    def roundings(self) -> Array:
        return self.notes[:, 0]

    @property
    def outcome(self) -> Array:
        return self.notes[:, 1]


def weigh(
    points: PointMasses, signatures: SignatureRows, rows: RivalRows | None, width: int, run: Callable[..., Any]
) -> WeighedSignatures:
    """All of them; `width`: the most points of an event. `run` calls a kernel: one for all, one more for sweeps."""
    count = len(signatures.offsets) - 1
    weights = WeighedSignatures(
        np.zeros(count, points.share.dtype), np.zeros((count, 2), np.int64), np.zeros((count, 2), np.int64)
    )
    if rows is None:
        run(_weigh_orders, points, signatures, width, weights)
        return weights
    run(_weigh_rivals, points, signatures, rows, width, weights)
    swept = np.flatnonzero(weights.outcome == TO_SWEEP)
    if len(swept):
        run(_weigh_sweeps, points, signatures, rows, width, swept, weights)
    return weights


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _weigh_orders(points: PointMasses, signatures: SignatureRows, width: int, weights: WeighedSignatures) -> None:
    """Those without rivals."""
    offsets = signatures.offsets
    whole, box = _empty_boxes(offsets)
    vectors, sums = np.zeros((2, width), points.share.dtype), np.zeros((len(box), width), points.share.dtype)
    summed = -1  # whose sums these are
    for number in range(len(offsets) - 1):
        events, limits = signatures.events[offsets[number] : offsets[number + 1]], _limits_of(signatures, number)
        if not _frame(points, events, limits, whole):
            continue
        if _is_cut(points, events, limits) or _is_certain(points, events, whole, signatures.span):
            _weigh_order(points, events, signatures.span, whole, box, vectors[0], vectors[1], weights, number)
        elif _is_fit(points, events, weights, number):
            mass = mass_of_sums(points, events, whole, limits.last, _shared(signatures, summed, number), sums)
            _set_order(points, events, whole, mass, weights, number)
            summed = number


@njit(**INSIDE, forceinline=True)
def _is_cut(points: PointMasses, events: Array, limits: TimeLimits) -> bool:
    """Whether the span binds: the first event may be so early, and the last so late, that they are too far apart."""
    first, last = events[0], events[len(events) - 1]
    begin, end = max(points.bounds[first, LOW], limits.first), min(points.bounds[last, HIGH], limits.last)
    return end - begin >= limits.span


@njit(**INSIDE, forceinline=True)
def _shared(signatures: SignatureRows, one: int, other: int) -> int:
    """With how many equal events two signatures begin; none if they are in different windows, or there is no first."""
    if one < 0:
        return 0
    if len(signatures.window) and np.any(signatures.window[one] != signatures.window[other]):
        return 0
    offsets, events, count = signatures.offsets, signatures.events, 0
    most = min(offsets[one + 1] - offsets[one], offsets[other + 1] - offsets[other])
    while count < most and events[offsets[one] + count] == events[offsets[other] + count]:
        count += 1
    return count


@njit(**INSIDE, forceinline=True)
def _set_order(
    points: PointMasses, events: Array, whole: Array, mass: Any, weights: WeighedSignatures, number: int
) -> None:
    """The confidence where no span binds; a first event that begins earlier is in order too."""
    last = len(events) - 1
    if mass > 0:
        weights.confidence[number] = mass
        weights.times[number, LOW] = first_point(points, events[0], whole[0, LOW], whole[0, HIGH])
        weights.times[number, HIGH] = last_point(points, events[last], whole[last, LOW], whole[last, HIGH])


@njit(nogil=True)
def _weigh_rivals(
    points: PointMasses, signatures: SignatureRows, rows: RivalRows, width: int, weights: WeighedSignatures
) -> None:
    """Those with rivals, up to sweeps."""
    offsets = signatures.offsets
    whole, box = _empty_boxes(offsets)
    space, table = (
        workspace_for(width, len(box) - 1, points.share),
        empty_rival_table(largest(rows.offsets), len(box)),
    )
    for number in range(len(offsets) - 1):
        events, limits = signatures.events[offsets[number] : offsets[number + 1]], _limits_of(signatures, number)
        if not _frame(points, events, limits, whole):
            continue
        sort_rivals(points, rows, number, len(events), whole, limits, table)
        if not has_work(table):
            _weigh_order(points, events, signatures.span, whole, box, space.vector, space.spare, weights, number)
            continue
        _note_precision(points, events, rows, table, weights, number)
        if weights.notes[number, 1] == DONE:
            boxed = BoxedSignature(points, rows, table, events, whole, box, limits)
            _sum_boxes(weigh_quiet, boxed, space, weights, number)


@njit(nogil=True)
def _weigh_sweeps(
    points: PointMasses,
    signatures: SignatureRows,
    rows: RivalRows,
    width: int,
    numbers: Array,
    weights: WeighedSignatures,
) -> None:
    """Those of some numbers, by sweeps."""
    offsets = signatures.offsets
    whole, box = _empty_boxes(offsets)
    space, table = (
        workspace_for(width, len(box) - 1, points.share),
        empty_rival_table(largest(rows.offsets), len(box)),
    )
    for number in numbers:
        events, limits = signatures.events[offsets[number] : offsets[number + 1]], _limits_of(signatures, number)
        _frame(points, events, limits, whole)
        sort_rivals(points, rows, number, len(events), whole, limits, table)
        weights.notes[number, 1] = DONE
        boxed = BoxedSignature(points, rows, table, events, whole, box, limits)
        _sum_boxes(weigh_sweep, boxed, space, weights, number)


@njit(**INSIDE)
def _empty_boxes(offsets: Array) -> tuple[Array, Array]:
    """Two with space for every signature."""
    size = largest(offsets)
    return np.zeros((size, 2), np.int64), np.zeros((size, 2), np.int64)


@njit(**INSIDE)
def largest(offsets: Array) -> int:
    """The most entries of one."""
    most = 0
    for number in range(len(offsets) - 1):
        most = max(most, offsets[number + 1] - offsets[number])
    return most


@njit(**INSIDE, forceinline=True)
def _limits_of(signatures: SignatureRows, number: int) -> TimeLimits:
    if len(signatures.window):
        return TimeLimits(signatures.span, signatures.window[number, 0], signatures.window[number, 1], False)
    return TimeLimits(signatures.span, -FAR, FAR, signatures.span < FAR)


@njit(**INSIDE, forceinline=True)
def _frame(points: PointMasses, events: Array, limits: TimeLimits, whole: Array) -> bool:
    """Where the events of a signature can lie; says whether it is possible at all."""
    for j in range(len(events)):
        whole[j, LOW] = max(points.bounds[events[j], LOW], limits.first)
        whole[j, HIGH] = min(points.bounds[events[j], HIGH], limits.last)
    return tighten(whole, len(events), limits.span)


@njit(**INSIDE)
def _weigh_order(
    points: PointMasses, events: Array, span: int, whole: Array, box: Array, vector: Array, spare: Array,
    weights: WeighedSignatures, number: int,
) -> None:  # fmt: skip
    """Confidence, least start and greatest end without rivals. Who begins earlier or ends later is in order too."""
    last = len(events) - 1
    if _is_certain(points, events, whole, span):
        weights.confidence[number] = 1
        weights.times[number, LOW], weights.times[number, HIGH] = whole[0, LOW], whole[last, HIGH]
        return
    if not _is_fit(points, events, weights, number):
        return
    total, low, high = points.share[0] * 0, FAR, -FAR
    begin = whole[0, LOW]
    while begin <= whole[0, HIGH]:
        end = begin if whole[last, HIGH] - begin >= span else whole[0, HIGH]
        if narrow(whole, box, last + 1, (begin, end), (-FAR, begin + span - 1)):
            mass = mass_in_order(points, events, box, vector, spare)
            if mass > 0:
                total += mass
                low = min(low, first_point(points, events[0], box[0, LOW], box[0, HIGH]))
                high = max(high, last_point(points, events[last], box[last, LOW], box[last, HIGH]))
        begin = end + 1
    if total > 0:
        weights.confidence[number] = total
        weights.times[number, LOW], weights.times[number, HIGH] = low, high


@njit(**INSIDE, forceinline=True)
def _is_certain(points: PointMasses, events: Array, whole: Array, span: int) -> bool:
    """Whether events are in order in all worlds, and in their window and span."""
    last = len(events) - 1
    for j in range(last + 1):
        event = events[j]
        if whole[j, LOW] != points.bounds[event, LOW] or whole[j, HIGH] != points.bounds[event, HIGH]:
            return False
        if j > 0 and whole[j, LOW] <= whole[j - 1, HIGH]:
            return False
    return whole[last, HIGH] - whole[0, LOW] < span


@njit(**INSIDE, forceinline=True)
def _is_fit(points: PointMasses, events: Array, weights: WeighedSignatures, number: int) -> bool:
    """Note how many roundings lie between the masses of events and a confidence at most; says if doubles are fit.

    An event's masses are summed and divided, its vector is summed and multiplied, and so are boxes: at most four
    roundings per point and four per event.
    """
    roundings, least = 8, 0.0
    for event in events:
        roundings += 4 * (points.bounds[event, HIGH] - points.bounds[event, LOW] + 2)
        least += points.least[event]
    weights.notes[number, 0] = roundings
    weights.notes[number, 1] = DELICATE if least < TINY else DONE
    return least >= TINY


@njit(**INSIDE)
def has_work(table: RivalTable) -> bool:
    """Whether a rival matters."""
    return bool(np.any(table.rivals[: table.tally[RIVALS], KIND] >= PLAIN))


@njit(**INSIDE)
def _note_precision(
    points: PointMasses,
    events: Array,
    rows: RivalRows,
    table: RivalTable,
    weights: WeighedSignatures,
    number: int,
) -> None:
    """The same with rivals: each is rounded once more when it is multiplied into all else."""
    _is_fit(points, events, weights, number)
    roundings, least = len(events) * table.tally[FLAGS], 0.0
    for event in events:
        least += points.least[event]
    for rival in range(table.tally[RIVALS]):
        if table.rivals[rival, KIND] >= PLAIN:
            event = rival_event(rows, table, rival)
            roundings += 4 * (points.bounds[event, HIGH] - points.bounds[event, LOW] + 3)
            least += points.least[event]
    weights.notes[number, 0] += roundings
    if table.tally[BITS] > MOST_AT_ONCE:
        weights.notes[number, 1] = TOO_MANY
    elif least < TINY:
        weights.notes[number, 1] = DELICATE
    elif table.tally[BITS] > 0:
        weights.notes[number, 1] = TO_SWEEP


@njit(**INSIDE, cache=False)
def _sum_boxes(box_mass: Any, boxed: BoxedSignature, space: Workspace, weights: WeighedSignatures, number: int) -> None:
    """Confidence, least start and greatest end with rivals. `box_mass` weighs a box."""
    last, span, tally, whole = len(boxed.events) - 1, boxed.limits.span, boxed.table.tally, boxed.whole
    space.filled[:] = False
    total, low, high = boxed.points.share[0] * 0, FAR, -FAR
    begin = whole[0, LOW]
    while begin <= whole[0, HIGH]:
        alone = tally[NEEDS_START] != 0 or whole[last, HIGH] - begin >= span
        starts = begin, (begin if alone else whole[0, HIGH])
        first_end, last_end = whole[last, LOW], min(whole[last, HIGH], begin + span - 1)
        while first_end <= last_end:
            ends = first_end, (first_end if tally[NEEDS_END] != 0 else last_end)
            if narrow(whole, boxed.box, last + 1, starts, ends):
                mass, latest = box_mass(boxed, space)
                if mass > 0:
                    total += mass
                    high = max(high, latest)
                    if starts[0] < low:
                        low = min(low, _least_start(box_mass, boxed, space, starts, ends))
            first_end = ends[1] + 1
        begin = starts[1] + 1
    if total > 0:
        weights.confidence[number] = total
        weights.times[number, LOW], weights.times[number, HIGH] = low, high


@njit(**INSIDE, cache=False)
def _least_start(
    box_mass: Any, boxed: BoxedSignature, space: Workspace, starts: tuple[int, int], ends: tuple[int, int]
) -> int:
    """The least start in a box of weight."""
    for start in range(starts[0], starts[1]):
        if mass_at(boxed.points, boxed.events[0], start) > 0 and narrow(
            boxed.whole, boxed.box, len(boxed.events), (start, start), ends
        ):
            mass, _ = box_mass(boxed, space)
            if mass > 0:
                return start
    return starts[1]
