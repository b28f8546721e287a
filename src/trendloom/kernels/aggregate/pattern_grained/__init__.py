"""Add up the matches of skip-till-next-match and contiguous runs without following a single run.

Idea: a run that stands at event e in state s goes on at the earliest time at which some move is possible, whatever it
bound before. So all runs that stand there share one entry (see `ledger`), and entries are pushed forward in time:

    runs(e, s) = [a run may start] + Σ runs(f, r) over all (f, r) whose successors include (e, s)

and the number of matches is Σ runs(e, s) over the accepting states. Three ways to find the successors:

- contiguous: they can only be at the next time (`consecutive`);
- every state has at most one move with a predicate, an inequality: entries wait for it in order (`waiting_in_order`);
- else a table of all successors (`matching.successors`), here. An entry lives only from its first predecessor to its
  own event: a pool holds those that are under way, and where a successor has one predecessor, the entry moves on
  without a copy.

Cost: that of the table, O(events · moves), times log for an order predicate; then O(events · states · lanes). The proof
is the definition of runs: docs/semantics.md on skip-till-next-match; Poppe, "Event Stream Analytics", ch. 16 (whose
Algorithm 9 keeps one last event only, and so loses runs where adjacent events have predicates).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Addends, Spans, SpanTotals, no_totals
from trendloom.kernels.aggregate.pattern_grained.contiguous import add_up_consecutive
from trendloom.kernels.aggregate.pattern_grained.ledger import (
    AT,
    CLOSED,
    END,
    FIRST,
    RESERVE,
    UNUSED,
    KeySpans,
    Lanes,
    RunLedger,
    RunRules,
    batch_end,
    close_lanes,
    give_back,
    join_entry,
    ledger_of,
    most_lanes,
    move_entry,
    open_pass,
    rules_of,
    stand,
    take_entry,
    with_more,
)
from trendloom.kernels.aggregate.pattern_grained.next_match import add_up_waiting, is_simple
from trendloom.kernels.columns.numbers import LEAN, Limbs, Numbers
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.successors import NONE, successors_of
from trendloom.kernels.matching.tables import fits_at, fitting_bits, possible


def add_up(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """The totals of every span, in the number system of `like`."""
    found = no_totals(addends, spans, like)
    if len(spans):
        _way_to_add_up(addends)(addends, spans, found)
    return found


def _way_to_add_up(addends: Addends) -> Callable[[Addends, Spans, SpanTotals], None]:
    if addends.automaton.spec.adjacent:
        return add_up_consecutive
    return add_up_waiting if is_simple(addends) else add_up_by_table


class Table(NamedTuple):
    """What the pass reads of every event: the positions it fits, and where runs that stand there go on.

    `pending[e, state]`: the entry of runs that will arrive at event e of the pass, or NONE.
    """

    fits: Array
    next_event: Array  # by state and event
    next_move: Array
    pending: Array


def add_up_by_table(addends: Addends, spans: Spans, found: SpanTotals) -> None:
    """Fill the totals of every span: the pass, interrupted whenever it needs more entries."""
    block, rules, fits = addends.block, rules_of(addends, found.numbers), fitting_bits(addends.block)
    states, lanes, stretches = len(rules.position_of), most_lanes(spans), KeySpans(spans.key, spans.low, spans.high)
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    successors = successors_of(addends.automaton, block, fits, key_end, rules.moves, rules.checks)
    pending = np.full((_longest(lanes, stretches), states), NONE, np.int32)
    table = Table(fits, successors.event, successors.move, pending)
    reserve = states * (1 + states * int((block.tie_end - block.tie_start).max(initial=1)))
    ledger = ledger_of(addends, found, 4 * reserve, lanes, reserve)
    pass_ = _with_scratch if isinstance(found.numbers, Limbs) else _lean
    while not pass_(stretches, lanes, table, rules, ledger, found):
        ledger = with_more(ledger)


@njit(nogil=True)
def _longest(lanes: int, spans: KeySpans) -> int:
    """The most events of a pass."""
    longest, end = 0, 0
    while end < len(spans.key):
        first, end = end, batch_end(end, lanes, spans)
        longest = max(longest, spans.high[end - 1] - spans.low[first])
    return longest


def _pass(
    spans: KeySpans, most: int, table: Table, rules: RunRules, ledger: RunLedger, found: SpanTotals
) -> bool:  # fmt: skip
    """All spans, at most so many at once, from where they were left; False: there are too few free entries."""
    place, fits, pending, position_of = ledger.place, table.fits, table.pending, rules.position_of
    while open_pass(most, spans, ledger):
        lanes, closed = Lanes(place[FIRST], place[END], spans), place[CLOSED]
        base, stop = spans.low[lanes.first], spans.high[lanes.end - 1]
        for e in range(place[AT], stop):
            if place[UNUSED] < place[RESERVE]:
                place[AT], place[CLOSED] = e, closed
                return False
            closed = close_lanes(e, closed, lanes, ledger, found)
            for state in range(len(position_of)):
                if fits_at(fits[e], position_of[state]):
                    entry = stand(int(pending[e - base, state]), e, state, lanes, rules, ledger)
                    pending[e - base, state] = NONE
                    if entry != NONE:
                        _push(entry, e, state, base, stop, table, rules, ledger)
        close_lanes(stop, closed, lanes, ledger, found)
        place[AT] = -1
    return True


@njit(**INSIDE, forceinline=True)
def _push(
    entry: int, e: int, state: int, base: int, stop: int, table: Table, rules: RunRules, ledger: RunLedger
) -> None:
    """The runs of an entry go on to their successors inside the pass."""
    pending, moves = table.pending, rules.moves
    f = table.next_event[state, e] if moves.begin[state] < moves.begin[state + 1] else NONE
    move = table.next_move[state, e] if f != NONE and f < stop else NONE
    if move != NONE and pending[f - base, moves.target[move]] == NONE:
        pending[f - base, moves.target[move]] = entry
        return
    if move != NONE:
        join_entry(pending[f - base, moves.target[move]], entry, ledger)
    elif f != NONE and f < stop:
        _branch(entry, e, state, f, base, table, rules, ledger)
    give_back(entry, ledger)


@njit(**INSIDE)
def _branch(
    entry: int, e: int, state: int, first: int, base: int, table: Table, rules: RunRules, ledger: RunLedger
) -> None:
    """Several events or moves of one time extend the runs of an entry: each takes a copy."""
    pending, moves, checks = table.pending, rules.moves, rules.checks
    for f in range(first, checks.tie_end[first]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if fits_at(table.fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                other = int(pending[f - base, moves.target[move]])
                if other == NONE:
                    other = take_entry(ledger)
                    pending[f - base, moves.target[move]] = other
                    move_entry(other, entry, ledger)
                else:
                    join_entry(other, entry, ledger)


_lean = njit(**LEAN)(_pass)
_with_scratch = njit(nogil=True)(_pass)
