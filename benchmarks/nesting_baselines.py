"""Nested sequences as NEEL+ finds them: outer bindings first, then what is nested, for each of them anew.

Algorithm 1 of D. Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", compiled. Events lie on a
stack per type. An event of the last component of the outermost SEQ triggers a search, backwards through the stacks and
within the window. Whole bindings of a SEQ are tested, and for each that passes every nested SEQ is computed in full
between the events around it. A nested SEQ behind a NOT rejects the binding if it has any result; other results are
joined to it. With push-in (`early`) a predicate is tested at the component that completes it; without, it waits until
all components of its SEQ are bound. That is the only difference: both test a predicate in the innermost SEQ that it
speaks of.

Cost: without push-in the product of the stacks of a SEQ in the window, times the same for what is nested in it.
Well written for what it is: from one component to the one before it the top of the stack is looked up in a table,
nothing is allocated while searching, a nested SEQ that decides against a binding ends it.

Queries: `SEQ` of events, `SEQ` and `NOT`, to any depth, with predicates of the form `a.x < b.y` or `a.x < 5` at
components, `WITHIN` without SLIDE. The outermost SEQ ends in an event; a nested SEQ has events around it, or a NOT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numba.typed import List as Buffers

from trendloom.lang import tree
from trendloom.lang.parser import parse_query
from trendloom.plan.bind import conjuncts

Array = np.ndarray[Any, Any]

OPERATORS = ("=", "<", "<=", ">", ">=")
EQUAL, LESS, AT_MOST, GREATER, AT_LEAST = range(len(OPERATORS))
NONE = -1
FIRST_ROWS = 1024
BUILT, MATCHES, CHECKSUM = range(3)
LONG_AGO = np.int64(-(2**62))


class Search(NamedTuple):
    """A query over the columns of a stream, all in numbers. Components of a SEQ follow each other."""

    time: Array  # of events, in order
    row: Array  # of the table that an event was
    value: Array  # by attribute and event; NaN is NULL
    stack: Array  # events by type, in order of time
    stack_start: Array
    below: Array  # by type and event: where the events of that type before it end in `stack`
    type_of: Array  # by component
    first: Array  # component of each SEQ, and
    last: Array
    child_start: Array  # by SEQ: where its nested ones begin among
    child: Array
    negative: Array
    left: Array  # component before it, or NONE
    right: Array
    test_start: Array  # by component: where the predicates tested there begin among
    test: Array  # component, attribute, operator, component or NONE, attribute
    constant: Array
    within: int


@dataclass(frozen=True)
class NestedMatches:
    """How many matches there are, the sum of the row numbers of their events, and the components tried on the way."""

    matches: int
    checksum: int
    built: int


def nested_matches(search: Search) -> NestedMatches:
    """All matches of the outermost SEQ, trigger by trigger; they are given out into a buffer that is dropped."""
    width = np.zeros(len(search.first), np.int64)
    for node in reversed(range(len(search.first))):
        nested = range(search.child_start[node], search.child_start[node + 1])
        joined = sum(int(width[search.child[at]]) for at in nested if not search.negative[at])
        width[node] = search.last[node] - search.first[node] + 1 + joined
    own, whole = Buffers(), Buffers()
    for node, size in enumerate(width):
        own.append(np.empty((FIRST_ROWS, int(search.last[node] - search.first[node]) + 1), np.int64))
        whole.append(np.empty((FIRST_ROWS, int(size)), np.int64))
    total = np.zeros(3, np.int64)
    _search_all(search, own, whole, total)
    return NestedMatches(int(total[MATCHES]), int(total[CHECKSUM]), int(total[BUILT]))


# ------------------------------------------------------------------------------------------------- the algorithm


@njit(cache=True, nogil=True)
def _search_all(search: Any, own: Any, whole: Any, total: Any) -> None:
    """Each event of the last component triggers a search."""
    bound = np.zeros(len(search.type_of), np.int64)
    cursor = np.zeros(len(search.type_of), np.int64)
    sizes = np.zeros(len(search.first), np.int64)
    trigger = search.last[0]
    kind = search.type_of[trigger]
    for at in range(search.stack_start[kind], search.stack_start[kind + 1]):
        bound[trigger] = search.stack[at]
        total[BUILT] += 1
        if not _passes(search, trigger, bound):
            continue
        end = search.time[bound[trigger]]
        low = LONG_AGO if search.within == 0 else end - search.within
        found = _process(search, 0, low, end, bound, cursor, sizes, own, whole, total)
        total[MATCHES] += found
        rows = own[0] if search.child_start[0] == search.child_start[1] else whole[0]
        for match in range(found):
            for place in range(rows.shape[1]):
                total[CHECKSUM] += search.row[rows[match, place]]


@njit(cache=True, nogil=True)
def _process(
    search: Any,
    node: int,
    low: int,
    high: int,
    bound: Any,
    cursor: Any,
    sizes: Any,
    own: Any,
    whole: Any,
    total: Any,
) -> Any:
    """processQuery: the bindings of a SEQ between two times, joined with those nested in it; how many there are."""
    found = _bind_components(search, node, low, high, bound, cursor, own, total)
    if search.child_start[node] == search.child_start[node + 1]:
        return found
    first, last = search.first[node], search.last[node]
    rows, joined = own[node], 0
    for at in range(found):
        for component in range(first, last + 1):
            bound[component] = rows[at, component - first]
        kept = True
        for nested in range(search.child_start[node], search.child_start[node + 1]):
            child, left, right = search.child[nested], search.left[nested], search.right[nested]
            after = low if left == NONE else search.time[bound[left]]
            before = high if right == NONE else search.time[bound[right]]
            size = _process(search, child, after, before, bound, cursor, sizes, own, whole, total)
            sizes[child] = size
            if (size > 0) == search.negative[nested]:
                kept = False
                break
        if kept:
            joined = _join(search, node, at, joined, sizes, own, whole)
    return joined


@njit(cache=True, nogil=True)
def _bind_components(search: Any, node: int, low: int, high: int, bound: Any, cursor: Any, own: Any, total: Any) -> Any:
    """computeSingleQuery, evaluatePredicate: backwards from the last component, which is bound in the outermost SEQ."""
    first, last = search.first[node], search.last[node]
    rows, found = own[node], 0
    if node == 0:
        if first == last:
            rows[0, 0] = bound[last]
            return 1
        last -= 1
        cursor[last] = search.below[search.type_of[last], bound[last + 1]]
    else:
        cursor[last] = _events_before(search, search.type_of[last], high)
    at = last
    while at <= last:
        cursor[at] -= 1
        if cursor[at] < search.stack_start[search.type_of[at]]:
            at += 1
            continue
        event = search.stack[cursor[at]]
        if search.time[event] <= low:
            at += 1
            continue
        bound[at] = event
        total[BUILT] += 1
        if not _passes(search, at, bound):
            continue
        if at > first:
            at -= 1
            cursor[at] = search.below[search.type_of[at], event]
            continue
        if found == len(rows):
            rows = _grown(rows)
            own[node] = rows
        for component in range(rows.shape[1]):
            rows[found, component] = bound[first + component]
        found += 1
    return found


@njit(cache=True, nogil=True)
def _events_before(search: Any, kind: int, high: int) -> Any:
    """Where the events of a type before a time end on its stack."""
    begin, end = search.stack_start[kind], search.stack_start[kind + 1]
    while begin < end:
        middle = (begin + end) // 2
        if search.time[search.stack[middle]] < high:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def _passes(search: Any, component: int, bound: Any) -> Any:
    """Whether the predicates that are tested at a component are true."""
    for at in range(search.test_start[component], search.test_start[component + 1]):
        left = search.value[search.test[at, 1], bound[search.test[at, 0]]]
        other = search.test[at, 3]
        right = search.constant[at] if other == NONE else search.value[search.test[at, 4], bound[other]]
        operator = search.test[at, 2]
        if operator == EQUAL:
            true = left == right
        elif operator == LESS:
            true = left < right
        elif operator == AT_MOST:
            true = left <= right
        elif operator == GREATER:
            true = left > right
        else:
            true = left >= right
        if not true:
            return False
    return True


@njit(cache=True, nogil=True)
def _join(search: Any, node: int, at: int, joined: int, sizes: Any, own: Any, whole: Any) -> Any:
    """A binding beside every combination of what is nested in it; how many rows there are then."""
    begin, end = search.child_start[node], search.child_start[node + 1]
    number = 1
    for nested in range(begin, end):
        if not search.negative[nested]:
            number *= sizes[search.child[nested]]
    rows = whole[node]
    while joined + number > len(rows):
        rows = _grown(rows)
        whole[node] = rows
    mine = own[node]
    width = mine.shape[1]
    for combination in range(number):
        for place in range(width):
            rows[joined + combination, place] = mine[at, place]
    place, period = width, 1
    for nested in range(begin, end):
        if search.negative[nested]:
            continue
        child = search.child[nested]
        inner = own[child] if search.child_start[child] == search.child_start[child + 1] else whole[child]
        for combination in range(number):
            chosen = combination // period % sizes[child]
            for column in range(inner.shape[1]):
                rows[joined + combination, place + column] = inner[chosen, column]
        place += inner.shape[1]
        period *= sizes[child]
    return joined + number


@njit(cache=True, nogil=True)
def _grown(rows: Any) -> Any:
    larger = np.empty((2 * rows.shape[0], rows.shape[1]), np.int64)
    larger[: len(rows)] = rows
    return larger


# ------------------------------------------------------------------------------------------- from query to numbers


@dataclass
class _Reading:
    """What a query consists of, filled while its pattern is read."""

    types: list[str] = field(default_factory=list)  # by component
    variables: dict[str, int] = field(default_factory=dict)
    node_of: list[int] = field(default_factory=list)  # by component
    bounds: list[tuple[int, int]] = field(default_factory=list)  # by SEQ: first and last component
    around: list[int] = field(default_factory=list)  # by SEQ: the one that it is nested in
    nested: list[list[tuple[int, bool, int, int]]] = field(default_factory=list)
    predicates: list[tree.Expression] = field(default_factory=list)

    def read(self, pattern: tree.Seq | tree.Event, around: int) -> int:
        """Number a SEQ, its components and what is nested in it."""
        parts = pattern.parts if isinstance(pattern, tree.Seq) else (pattern,)
        node, first = len(self.bounds), len(self.types)
        for event in (part for part in parts if isinstance(part, tree.Event)):
            self.variables[event.variable or event.type] = len(self.types)
            self.types.append(event.type)
            self.node_of.append(node)
            self.predicates.extend(conjuncts(event.predicate))
        self.bounds.append((first, len(self.types) - 1))
        self.around.append(around)
        self.nested.append([])
        seen = first
        for number, part in enumerate(parts):
            if isinstance(part, tree.Event):
                seen += 1
                continue
            self._refuse_neighbours(parts, number)
            negative = isinstance(part, tree.Not)
            inner = part.pattern if isinstance(part, tree.Not) else part
            assert isinstance(inner, tree.Seq | tree.Event), "a nested pattern is a SEQ or an event"
            child = self.read(inner, node)
            left, right = (seen - 1 if seen > first else NONE), (seen if seen <= self.bounds[node][1] else NONE)
            self.nested[node].append((child, negative, left, right))
        return node

    def _refuse_neighbours(self, parts: tuple[tree.Pattern, ...], number: int) -> None:
        """Refuse a nested SEQ beside another or a NOT: what is between them is not between two components."""
        beside = parts[max(number - 1, 0) : number] + parts[number + 1 : number + 2]
        both = (*beside, parts[number])
        if any(isinstance(part, tree.Seq) for part in both) and any(not isinstance(b, tree.Event) for b in beside):
            raise ValueError("a nested SEQ needs events around it")

    def tests(self, *, early: bool) -> Iterator[tuple[int, tuple[int, str, int, int, str], float]]:
        """Each predicate: where it is tested, what it compares, and its constant."""
        for predicate in self.predicates:
            assert isinstance(predicate, tree.Binary)
            assert isinstance(predicate.left, tree.Reference)
            left, right = predicate.left, predicate.right
            sides = [left, right] if isinstance(right, tree.Reference) else [left]
            used = [self.variables[side.variable] for side in sides]
            inner = max((self.node_of[component] for component in used), key=self._depth)
            if any(self.node_of[component] not in self._chain(inner) for component in used):
                raise ValueError("a predicate compares what no SEQ sees together")
            first = self.bounds[inner][0]
            place = min(c for c in used if self.node_of[c] == inner) if early else first
            other = (used[1], str(right.attribute)) if isinstance(right, tree.Reference) else (NONE, "")
            constant = float(right.value) if isinstance(right, tree.Literal) else 0.0
            yield place, (used[0], str(left.attribute), OPERATORS.index(predicate.operator), *other), constant

    def _chain(self, node: int) -> list[int]:
        return [node] if node == 0 else [node, *self._chain(self.around[node])]

    def _depth(self, node: int) -> int:
        return len(self._chain(node))


def nested_search(text: str, table: pa.Table, *, early: bool) -> Search:
    """What the algorithm needs to find the matches of a query in a table of events."""
    query = parse_query(text)
    assert isinstance(query.pattern, tree.Seq | tree.Event)
    reading = _Reading()
    reading.read(query.pattern, NONE)
    if isinstance(query.pattern, tree.Seq) and not isinstance(query.pattern.parts[-1], tree.Event):
        raise ValueError("the outermost SEQ ends in an event, which triggers the search")
    tests = sorted(reading.tests(early=early), key=lambda test: test[0])
    names = sorted({name for _, test, _ in tests for name in (test[1], test[4]) if name})
    compared = [(c, names.index(x), op, d, names.index(y) if y else 0) for _, (c, x, op, d, y), _ in tests]
    nested = [one for some in reading.nested for one in some]
    kinds = sorted(set(reading.types))
    within = 0 if query.within is None else int(query.within.within.amount)
    return Search(
        **_columns(table, kinds, names),
        type_of=np.array([kinds.index(kind) for kind in reading.types], np.int64),
        first=np.array([first for first, _ in reading.bounds], np.int64),
        last=np.array([last for _, last in reading.bounds], np.int64),
        child_start=np.cumsum([0, *map(len, reading.nested)]).astype(np.int64),
        child=np.array([child for child, *_ in nested], np.int64),
        negative=np.array([negative for _, negative, *_ in nested], np.bool_),
        left=np.array([left for *_, left, _ in nested], np.int64),
        right=np.array([right for *_, right in nested], np.int64),
        test_start=np.searchsorted([place for place, *_ in tests], np.arange(len(reading.types) + 1)).astype(np.int64),
        test=np.array(compared, np.int64).reshape(-1, 5),
        constant=np.array([constant for *_, constant in tests], np.float64),
        within=within,
    )


def _columns(table: pa.Table, kinds: list[str], names: list[str]) -> dict[str, Array]:
    """Events of the types of a query in order of time, their stacks, and the attributes that are compared."""
    types = table["type"].to_numpy(zero_copy_only=False)
    code = np.full(len(types), NONE)
    for number, kind in enumerate(kinds):
        code[types == kind] = number
    row = np.flatnonzero(code >= 0)
    row = row[np.argsort(table["time"].to_numpy()[row], kind="stable")]
    time, code = table["time"].to_numpy()[row].astype(np.int64), code[row]
    stack = np.argsort(code, kind="stable")
    start = np.searchsorted(code[stack], np.arange(len(kinds) + 1)).astype(np.int64)
    below = np.array([start[k] + np.searchsorted(time[code == k], time) for k in range(len(kinds))], np.int64)
    values = [table[name].to_numpy(zero_copy_only=False).astype(np.float64)[row] for name in names]
    value = np.array(values, np.float64).reshape(len(names), len(row))
    return {"time": time, "row": row, "value": value, "stack": stack, "stack_start": start, "below": below}
