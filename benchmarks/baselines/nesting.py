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
rows lie in one buffer, a nested SEQ that decides against a binding ends it.

Queries: `SEQ` of events, `SEQ` and `NOT`, to any depth, with predicates of the form `a.x < b.y` or `a.x < 5` at
components, `WITHIN` without SLIDE. The outermost SEQ ends in an event; a nested SEQ stands beside events only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.harness.compiled import njit
from trendloom.frontend import tree
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind.query import conjuncts

Array = np.ndarray[Any, Any]

OPERATORS = ("=", "<", "<=", ">", ">=")
EQUAL, LESS, AT_MOST, GREATER, AT_LEAST = range(len(OPERATORS))
NONE = -1
FIRST_ROOM = 1 << 16
BUILT, MATCHES, CHECKSUM = range(3)
TYPE, TESTS, TESTS_END = range(3)
FIRST, LAST, WIDTH, AROUND, CHILDREN, CHILDREN_END = range(6)
"""Of a SEQ: its first and last component, how wide its rows are, what it is nested in, what is nested in it."""
CHILD, LEFT, RIGHT, NEGATIVE = range(4)
"""Of what is nested: the SEQ, the components around it, or NONE, and whether it stands behind a NOT."""
LOW, HIGH, BASE, FOUND, AT, NESTED, JOINED, TOP, SIZE = range(9)
FRAME = 9
"""What is kept of a SEQ that is being computed: the times around it, where its rows begin, how many bindings there are,
at which of them and at which nested SEQ it is, how many rows were joined, where free room begins, how many results."""
LONG_AGO = np.int64(-(2**62))


class Search(NamedTuple):
    """A query over the columns of a stream, all in numbers. Components of a SEQ follow each other."""

    time: Array  # of events, in order
    row: Array  # of the table that an event was
    value: Array  # by attribute and event; NaN is NULL
    stack: Array  # events by type, in order of time
    stack_start: Array
    below: Array  # by type and event: where the events of that type before it end in `stack`
    components: Array  # by component: its type, and where the predicates tested there begin and end in `test`
    nodes: Array  # by SEQ: FIRST, LAST, WIDTH, AROUND, CHILDREN, CHILDREN_END
    nested: Array  # CHILD, LEFT, RIGHT, NEGATIVE
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
    """All matches of the outermost SEQ, trigger by trigger; they are written into a buffer that is dropped."""
    total = np.zeros(3, np.int64)
    _search_all(search, total)
    return NestedMatches(int(total[MATCHES]), int(total[CHECKSUM]), int(total[BUILT]))


# ------------------------------------------------------------------------------------------------- the algorithm


@njit
def _search_all(search: Any, total: Any) -> None:
    """Each event of the last component triggers a search.

    Rows lie in one buffer that is used as a stack: those of a SEQ, what was joined of them so far, then the results of
    what is nested in it.
    """
    bound = np.zeros(len(search.components), np.int64)
    cursor = np.zeros(len(search.components), np.int64)
    frames = np.zeros((len(search.nodes), FRAME), np.int64)
    rows = np.empty(FIRST_ROOM, np.int64)
    trigger = search.nodes[0, LAST]
    kind, begin, end = search.components[trigger]
    for at in range(search.stack_start[kind], search.stack_start[kind + 1]):
        bound[trigger] = search.stack[at]
        total[BUILT] += 1
        if not _passes(search.value, search.test, search.constant, begin, end, bound):
            continue
        frames[0, HIGH] = search.time[bound[trigger]]
        frames[0, LOW] = LONG_AGO if search.within == 0 else frames[0, HIGH] - search.within
        rows = _process(search, frames, bound, cursor, rows, total)
        total[MATCHES] += frames[0, SIZE]
        for place in range(frames[0, SIZE] * search.nodes[0, WIDTH]):
            total[CHECKSUM] += search.row[rows[place]]


@njit
def _process(search: Any, frames: Any, bound: Any, cursor: Any, rows: Any, total: Any) -> Any:
    """processQuery: the bindings of a SEQ between two times, joined with those of each SEQ nested in it.

    What calls itself in the thesis is a loop here, with a frame for each SEQ, which is being computed once at a time.
    """
    # names of their own, here and below, because reading a field of a bundle counts a reference to it
    time, nodes, nested = search.time, search.nodes, search.nested
    node = 0
    rows = _bind_components(search, node, frames, bound, cursor, rows, total)
    while True:
        if frames[node, AT] < frames[node, FOUND] and nodes[node, CHILDREN] < nodes[node, CHILDREN_END]:
            at = frames[node, NESTED]
            if at == nodes[node, CHILDREN_END]:
                rows = _join(nodes, nested, node, frames, rows)
                _next_row(nodes, node, frames, bound, rows)
                continue
            child, left, right = nested[at, CHILD], nested[at, LEFT], nested[at, RIGHT]
            frames[child, LOW] = frames[node, LOW] if left == NONE else time[bound[left]]
            frames[child, HIGH] = frames[node, HIGH] if right == NONE else time[bound[right]]
            frames[child, BASE] = frames[node, TOP]
            node = child
            rows = _bind_components(search, node, frames, bound, cursor, rows, total)
            continue
        _finish(nodes, node, frames, rows)
        if node == 0:
            return rows
        node = nodes[node, AROUND]
        _take_result(nodes, nested, node, frames, bound, rows)


@njit
def _bind_components(search: Any, node: int, frames: Any, bound: Any, cursor: Any, rows: Any, total: Any) -> Any:
    """computeSingleQuery, evaluatePredicate: backwards from the last component, which is bound in the outermost SEQ."""
    time, stack, stack_start, components = search.time, search.stack, search.stack_start, search.components
    below, value, test, constant = search.below, search.value, search.test, search.constant
    first, last = search.nodes[node, FIRST], search.nodes[node, LAST]
    low, width, place, begin = frames[node, LOW], last - first + 1, frames[node, BASE], last
    if node == 0 and first == last:
        rows[place] = bound[last]
        place += 1
        begin = first - 1
    elif node == 0:
        begin = last - 1
        cursor[begin] = below[components[begin, TYPE], bound[last]]
    else:
        kind = components[begin, TYPE]
        cursor[begin] = _events_before(time, stack, stack_start[kind], stack_start[kind + 1], frames[node, HIGH])
    at, tried = begin, 0
    while first <= at <= begin:
        cursor[at] -= 1
        if cursor[at] < stack_start[components[at, TYPE]]:
            at += 1
            continue
        event = stack[cursor[at]]
        if time[event] <= low:
            at += 1
            continue
        bound[at] = event
        tried += 1
        if not _passes(value, test, constant, components[at, TESTS], components[at, TESTS_END], bound):
            continue
        if at > first:
            at -= 1
            cursor[at] = below[components[at, TYPE], event]
            continue
        if place + width > len(rows):
            rows = _with_room(rows, place + width)
        for component in range(first, last + 1):
            rows[place] = bound[component]
            place += 1
    total[BUILT] += tried
    frames[node, FOUND] = (place - frames[node, BASE]) // width
    frames[node, JOINED], frames[node, AT] = 0, -1
    _next_row(search.nodes, node, frames, bound, rows)
    return rows


@njit
def _next_row(nodes: Any, node: int, frames: Any, bound: Any, rows: Any) -> None:
    """Turn to the next binding of a SEQ; what is nested in it goes behind what was joined."""
    frame = frames[node]
    first, width = nodes[node, FIRST], nodes[node, LAST] - nodes[node, FIRST] + 1
    frame[AT] += 1
    frame[NESTED] = nodes[node, CHILDREN]
    frame[TOP] = frame[BASE] + frame[FOUND] * width + frame[JOINED] * nodes[node, WIDTH]
    if frame[AT] < frame[FOUND]:
        for place in range(width):
            bound[first + place] = rows[frame[BASE] + frame[AT] * width + place]


@njit
def _take_result(nodes: Any, nested: Any, node: int, frames: Any, bound: Any, rows: Any) -> None:
    """What a nested SEQ decides: the binding is rejected, or the next nested one is computed."""
    at = frames[node, NESTED]
    size = frames[nested[at, CHILD], SIZE]
    if (size > 0) == (nested[at, NEGATIVE] == 1):
        _next_row(nodes, node, frames, bound, rows)
        return
    frames[node, TOP] += size * nodes[nested[at, CHILD], WIDTH]
    frames[node, NESTED] += 1


@njit
def _finish(nodes: Any, node: int, frames: Any, rows: Any) -> None:
    """Put the results of a SEQ where its bindings were."""
    frame = frames[node]
    if nodes[node, CHILDREN] == nodes[node, CHILDREN_END]:
        frame[SIZE] = frame[FOUND]
        return
    begin = frame[BASE] + frame[FOUND] * (nodes[node, LAST] - nodes[node, FIRST] + 1)
    for place in range(frame[JOINED] * nodes[node, WIDTH]):
        rows[frame[BASE] + place] = rows[begin + place]
    frame[SIZE] = frame[JOINED]


@njit
def _events_before(time: Any, stack: Any, begin: int, end: int, high: int) -> Any:
    """Where the events before a time end in a part of the stack."""
    while begin < end:
        middle = (begin + end) // 2
        if time[stack[middle]] < high:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit
def _passes(value: Any, test: Any, constant: Any, begin: int, end: int, bound: Any) -> Any:
    """Whether some of the predicates are true."""
    for at in range(begin, end):
        left = value[test[at, 1], bound[test[at, 0]]]
        other, operator = test[at, 3], test[at, 2]
        right = constant[at] if other == NONE else value[test[at, 4], bound[other]]
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


@njit
def _join(nodes: Any, nested: Any, node: int, frames: Any, rows: Any) -> Any:
    """A binding beside every combination of what is nested in it, behind what was joined before."""
    frame = frames[node]
    begin, end = nodes[node, CHILDREN], nodes[node, CHILDREN_END]
    number = 1
    for at in range(begin, end):
        if nested[at, NEGATIVE] == 0:
            number *= frames[nested[at, CHILD], SIZE]
    own, width, top = nodes[node, LAST] - nodes[node, FIRST] + 1, nodes[node, WIDTH], frame[TOP]
    rows = _with_room(rows, top + number * width)
    for combination in range(number):
        place, rest = top + combination * width, combination
        for column in range(own):
            rows[place + column] = rows[frame[BASE] + frame[AT] * own + column]
        place += own
        for at in range(begin, end):
            if nested[at, NEGATIVE] == 1:
                continue
            child = nested[at, CHILD]
            chosen = frames[child, BASE] + rest % frames[child, SIZE] * nodes[child, WIDTH]
            rest //= frames[child, SIZE]
            for column in range(nodes[child, WIDTH]):
                rows[place + column] = rows[chosen + column]
            place += nodes[child, WIDTH]
    target = frame[BASE] + frame[FOUND] * own + frame[JOINED] * width
    for place in range(number * width):
        rows[target + place] = rows[top + place]
    frame[JOINED] += number
    return rows


@njit
def _with_room(rows: Any, size: int) -> Any:
    """The buffer, or a copy that is large enough."""
    if size <= len(rows):
        return rows
    larger = np.empty(2 * size, np.int64)
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
    nested: list[list[tuple[int, int, int, int]]] = field(default_factory=list)
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
        if first == len(self.types):
            raise ValueError("a SEQ has an event of its own")
        self.bounds.append((first, len(self.types) - 1))
        self.around.append(around)
        self.nested.append([])
        seen = first
        for number, part in enumerate(parts):
            if isinstance(part, tree.Event):
                seen += 1
                continue
            self._refuse_neighbours(parts, number)
            inner = part.pattern if isinstance(part, tree.Not) else part
            assert isinstance(inner, tree.Seq | tree.Event), "a nested pattern is a SEQ or an event"
            child = self.read(inner, node)
            left, right = (seen - 1 if seen > first else NONE), (seen if seen <= self.bounds[node][1] else NONE)
            self.nested[node].append((child, left, right, int(isinstance(part, tree.Not))))
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

    def node(self, number: int) -> tuple[int, ...]:
        """What the search needs to know of a SEQ; what is nested in the SEQs before it comes first."""
        children = sum(map(len, self.nested[:number]))
        around = (self.width(number), self.around[number], children, children + len(self.nested[number]))
        return *self.bounds[number], *around

    def width(self, number: int) -> int:
        first, last = self.bounds[number]
        return last - first + 1 + sum(self.width(child) for child, *_, negative in self.nested[number] if not negative)

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
    begin = np.searchsorted([place for place, *_ in tests], np.arange(len(reading.types) + 1)).astype(np.int64)
    kinds = sorted(set(reading.types))
    within = 0 if query.within is None else int(query.within.within.amount)
    return Search(
        **_columns(table, kinds, names),
        components=np.column_stack([[kinds.index(kind) for kind in reading.types], begin[:-1], begin[1:]]),
        nodes=np.array([reading.node(number) for number in range(len(reading.bounds))], np.int64),
        nested=np.array([one for some in reading.nested for one in some], np.int64).reshape(-1, 4),
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
