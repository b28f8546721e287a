"""The sweep of `sweep` in plain Python, which runs for as long as it is not compiled: numbers are Python's own.

For plain graphs, swept whole batches at a time, without nested trees; everything else is interpreted as written. A
cell is a pair of lists, numbers and least values, each by lane, and is never changed: cells share what they have in
common, and None is the empty one. Merges happen in the order of the compiled sweep, so doubles agree to the bit.

Cost: as `sweep`, with about a microsecond for every merge.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import add
from typing import Any

import numpy as np

from trendloom.kernels.aggregate.event_grained.structures import HASH, NESTED, SOURCE, SUM, TARGET, TREE, Arms
from trendloom.kernels.aggregate.measures import ABSENT, EMPTY, FREE
from trendloom.kernels.columns.numbers import Doubles, Scaled
from trendloom.kernels.columns.words import add_scaled, put_integer

Cell = tuple[list[Any], list[int]] | None

LARGEST = 2.0**512
"""Beyond, a double needs an exponent of its own to stay what it is."""


def sweep_interpreted(tables: Any, batches: Any, part: Any, sink: Any) -> bool:
    """Sweep a part; False if that is not for this sweep, and then nothing has happened."""
    some = slice(part.begin, part.end)
    whole = (batches.low[some] >= part.low).all() and (batches.high[some] <= part.high).all()
    if not tables.graph.plain or (tables.arms.kind == NESTED).any() or not whole:
        return False
    sweep = _Sweep(tables, batches.lanes)
    found = {}
    for first, begin, end in zip(
        *(one[some].tolist() for one in (batches.span, batches.low, batches.high)), strict=True
    ):
        mine = slice(first, first + batches.lanes)
        totals = sweep.batch(batches.opens[mine].tolist(), batches.closes[mine].tolist(), begin, end)
        found.update({(first + lane, lane): total for lane, total in enumerate(totals) if total is not None})
    if isinstance(sink.numbers, Scaled) and not all(
        abs(number) < LARGEST for (_, lane), total in found.items() for number in total[0][lane :: batches.lanes]
    ):
        return False
    for (span, lane), (numbers, least) in found.items():
        _give_out(sink, span, numbers[lane :: batches.lanes], least[lane :: batches.lanes])
    return True


def _give_out(sink: Any, span: int, numbers: list[Any], least: list[int]) -> None:
    spill = np.zeros(len(numbers), np.int64)
    for m, number in enumerate(numbers):
        if isinstance(sink.numbers, Doubles):
            sink.numbers.value[span, m] += number
        elif isinstance(sink.numbers, Scaled):
            add_scaled(sink.numbers, span, m, number, 0)
        else:
            put_integer(sink.numbers, span, m, number, spill)
    sink.least[span] = least
    sink.spilled[span] = bool(spill.any())


class _Sweep:
    """The tables of a block, as lists."""

    def __init__(self, tables: Any, lanes: int) -> None:
        graph, terms, items, arms = tables
        self.lanes, self.width, self.extremes = lanes, 1 + len(terms.weight_of), len(terms.valued)
        self.zero: Any = 0 if terms.weights.dtype == np.int64 else 0.0
        self.event, self.state, self.ordinal = (one.tolist() for one in (items.event, items.state, items.ordinal))
        self.tie_end = items.tie_end.tolist()
        states = range(len(graph.lead))
        self.of_state = [items.of_state[items.begin[s] : items.begin[s + 1]].tolist() for s in states]
        self.starts, self.ends = (graph.lead == FREE).tolist(), (graph.trail == FREE).tolist()
        moves = [graph.into[graph.into_begin[s] : graph.into_begin[s + 1]] for s in states]
        self.into = [
            [int(arm) for move in some for arm in graph.arms[graph.arms_begin[move] : graph.arms_begin[move + 1]]]
            for some in moves
        ]
        self.out = [graph.out[graph.out_begin[s] : graph.out_begin[s + 1]].tolist() for s in states]
        weights, values = terms.weights.tolist(), terms.values.tolist()
        self.weighing = [
            [
                (1 + m, weights[row] if row >= 0 else None)
                for m, row in enumerate(terms.weight_of.tolist())
                if terms.weighs[m, state]
            ]
            for state in states
        ]
        self.valuing = [[(x, values[x]) for x in range(self.extremes) if terms.valued[x, state]] for state in states]
        self.arms = [_Structure(arms, arm) for arm in range(len(arms.kind))]

    def batch(self, low: list[int], high: list[int], begin: int, end: int) -> list[Cell]:
        """The total of every lane when it closes; lanes are open from the events `low` to `high`."""
        for arm in self.arms:
            arm.place(*(self._items_between(state, begin, end) for state in (arm.source, arm.target)))
        total: Cell = None
        found: list[Cell] = []
        opened, item = 0, begin
        while item < end:
            event, after = self.event[item], item
            while after < end and self.event[after] < self.tie_end[event]:
                after += 1
            while len(found) < self.lanes and high[len(found)] <= event:
                found.append(total)
            while opened < self.lanes and low[opened] <= event:
                opened += 1
            fresh = self._started(len(found), opened)
            reached = [self._reach(one, fresh) for one in range(item, after)]
            for one, cell in zip(range(item, after), reached, strict=True):
                if cell is not None and self.ends[self.state[one]]:
                    total = merged(total, cell)
            for one, cell in zip(range(item, after), reached, strict=True):
                if cell is not None and any(cell[0][: self.lanes]):
                    for arm in self.out[self.state[one]]:
                        self.arms[arm].insert(self.ordinal[one], cell)
            item = after
        return found + [total] * (self.lanes - len(found))

    def _items_between(self, state: int, begin: int, end: int) -> tuple[int, int]:
        return bisect_left(self.of_state[state], begin), bisect_left(self.of_state[state], end)

    def _started(self, closed: int, opened: int) -> Cell:
        """One match in every open lane."""
        if opened <= closed:
            return None
        outside, inside = closed, self.lanes - opened
        numbers = [self.zero] * (self.width * self.lanes)
        numbers[closed:opened] = [self.zero + 1] * (opened - closed)
        return numbers, ([ABSENT] * outside + [EMPTY] * (opened - closed) + [ABSENT] * inside) * self.extremes

    def _reach(self, item: int, fresh: Cell) -> Cell:
        """All partial matches that an item ends, with what it adds itself."""
        state, event, ordinal = self.state[item], self.event[item], self.ordinal[item]
        cell = fresh if self.starts[state] else None
        for arm in self.into[state]:
            cell = self.arms[arm].gather(ordinal, cell)
        if cell is None or not (self.weighing[state] or self.valuing[state]):
            return cell
        numbers, least, lanes = list(cell[0]), cell[1], self.lanes
        counts = numbers[:lanes]
        for m, weights in self.weighing[state]:
            weight = 1 if weights is None else weights[event]
            if weight != 0:
                mine = slice(m * lanes, (m + 1) * lanes)
                more = counts if weights is None else [count * weight for count in counts]
                numbers[mine] = map(add, numbers[mine], more)
        for x, values in self.valuing[state]:
            value, mine = values[event], slice(x * lanes, (x + 1) * lanes)
            least = least.copy()
            least[mine] = [value if value < one != ABSENT else one for one in least[mine]]
        return numbers, least


class _Structure:
    """An arm, and what was inserted into it. `begin`, `place`: of earlier events; `tree`, `prefix`: of later ones."""

    def __init__(self, arms: Arms, arm: int) -> None:
        self.kind, self.source, self.target = (int(one[arm]) for one in (arms.kind, arms.source, arms.target))
        self.strict = int(arms.strict[arm, 0])
        self.codes = [arms.codes[int(at) :] for at in arms.code_at[arm, 0]]
        self.classes = [arms.classes[int(at) :] if at >= 0 else None for at in arms.class_at[arm]]
        self.listed = [codes.tolist() for codes in self.codes] if self.kind == HASH else []
        self.nodes: Any = {}

    def place(self, sources: tuple[int, int], targets: tuple[int, int]) -> None:
        """Empty, for a batch of these ordinals of the two states."""
        self.nodes = {}
        if self.kind != TREE:
            return
        self.first = sources[0], targets[0]
        codes, asked = self.codes[SOURCE][slice(*sources)], self.codes[TARGET][slice(*targets)]
        known = np.flatnonzero(codes >= 0)
        order = known[np.argsort(codes[known], kind="stable")]
        begins = np.zeros(len(order), np.int64)
        passed = np.searchsorted(codes[order], asked - self.strict, side="right")
        passed[asked < 0] = 0
        last = np.maximum(passed - 1, 0)
        tree = np.zeros(len(asked), np.int64)
        theirs, mine = self.classes
        sizes = np.full(len(order), len(order))
        if theirs is not None and mine is not None and len(order):
            classes = theirs[slice(*sources)][order]
            heads = np.flatnonzero(np.append(True, classes[1:] != classes[:-1]))
            length = np.diff(np.append(heads, len(order)))
            begins, sizes = np.repeat(heads, length), np.repeat(length, length)
            passed[classes[last] != mine[slice(*targets)]] = 0
            tree = np.where(passed > 0, begins[last], 0)
        place, begin, size = np.full((3, len(codes)), -1)
        place[order], begin[order], size[order] = np.arange(len(order)) - begins, begins, sizes
        self.places, self.begin, self.size = place.tolist(), begin.tolist(), size.tolist()
        self.tree, self.prefix = tree.tolist(), np.where(passed > 0, passed - tree, 0).tolist()

    def insert(self, ordinal: int, cell: Cell) -> None:
        """Let later events find a cell."""
        nodes = self.nodes
        if self.kind == TREE:
            item = ordinal - self.first[SOURCE]
            at, begin, size = self.places[item], self.begin[item], self.size[item]
            while 0 <= at < size:
                nodes[begin + at] = merged(nodes.get(begin + at), cell)
                at |= at + 1
        else:
            code = 0 if self.kind == SUM else self.listed[SOURCE][ordinal]
            if code >= 0:
                nodes[code] = merged(nodes.get(code), cell)

    def gather(self, ordinal: int, cell: Cell) -> Cell:
        """A cell with all that an event may follow."""
        if self.kind == TREE:
            item = ordinal - self.first[TARGET]
            at, begin = self.prefix[item], self.tree[item] - 1
            while at > 0:
                cell = merged(cell, self.nodes.get(begin + at))
                at &= at - 1
            return cell
        return merged(cell, self.nodes.get(0 if self.kind == SUM else self.listed[TARGET][ordinal]))


def merged(a: Cell, b: Cell) -> Cell:
    """Two cells as one."""
    if a is None or b is None:
        return b if a is None else a
    return list(map(add, a[0], b[0])), [x if x < y else y for x, y in zip(a[1], b[1], strict=True)]
