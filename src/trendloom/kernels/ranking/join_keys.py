"""Equalities between operands, as keys of a join: entries that do not agree never meet; and numbers for keys.

Conditions `a.id = c.ref` link the two sides. What is linked is a class, and a class with a side in every operand is
a column of the key: a number for every event, such that events that are equal have the same number. NULL is equal to
nothing, so its numbers differ by operand. Numbers of an integer and a double that are equal are the same, but not the
other way round, so then the condition is tested as well; otherwise the key says it all.

A key is a row of integers (codes of columns, or numbers of events). Rows that were seen stand in an open table by their
hash and are compared column by column, so that different keys never meet: equal rows have equal numbers, and numbers
are dense.

Cost: O(events) for each column of the key, O(columns) per row; the table is at most half full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Comparison, Expr, variables
from trendloom.expr.vectors import Vector, aligned, to_doubles, unify
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.model.schema import Kind

if TYPE_CHECKING:
    from trendloom.kernels.ranking.join_operands import JoinOperand

FIRST_KEYS = 1 << 8
"""Keys that there is room for at first."""
Side = tuple[int, Expr]
"""An operand, and an expression over one of its events."""


@dataclass(frozen=True)
class EqualSides:
    """Expressions, one for each operand, that are equal in every match; `rules` say so, and nothing else."""

    sides: tuple[Expr, ...]
    rules: tuple[Rule, ...]


def equalities_of(rules: Sequence[Rule], operands: Sequence[JoinOperand]) -> tuple[EqualSides, ...]:
    """The classes of equal expressions that have a side in every operand."""
    classes: list[tuple[set[Side], list[Rule]]] = []
    for rule in rules:
        sides = _sides(rule.expr, operands)
        if sides is None:
            continue
        joined = [one for one in classes if one[0] & sides]
        classes = [one for one in classes if one not in joined]
        classes.append((sides.union(*(one[0] for one in joined)), [*(r for one in joined for r in one[1]), rule]))
    found = []
    for several, stated in classes:
        by_operand = dict(sorted(several, key=lambda side: (side[0], str(side[1]))))
        if len(by_operand) == len(operands) > 1:
            simple = len(several) == len(operands)
            exprs = tuple(by_operand[number] for number in range(len(operands)))
            found.append(EqualSides(exprs, tuple(stated) if simple else ()))
    return tuple(found)


def _sides(expr: Expr, operands: Sequence[JoinOperand]) -> set[Side] | None:
    """Both sides of an equality of two operands; None: it is something else, or a match may lack a side."""
    if not isinstance(expr, Comparison) or expr.operator != "=":
        return None
    found: set[Side] = set()
    for side in (expr.left, expr.right):
        names = variables(side)
        owners = [n for n, one in enumerate(operands) if len(one.branches) == 1 and names <= set(one.variables)]
        if len(names) != 1 or len(owners) != 1:
            return None
        found.add((owners[0], side))
    return found if len({number for number, _ in found}) == 2 else None


@dataclass(frozen=True, eq=False)
class KeyColumns:
    """By operand columns of numbers by event, and the column of an entry that holds the event of each."""

    numbers: tuple[tuple[Array, ...], ...]
    places: tuple[tuple[int, ...], ...]

    def functions(self) -> list[Callable[[Array], Array]]:
        """For each operand the function from the events of entries to their keys."""
        return [self._function(operand) for operand in range(len(self.numbers))]

    def _function(self, operand: int) -> Callable[[Array], Array]:
        columns, places = self.numbers[operand], self.places[operand]

        def keys(events: Array) -> Array:
            return np.stack([one[events[:, at]] for one, at in zip(columns, places, strict=True)], axis=1)

        return keys


def key_columns(
    equalities: Sequence[EqualSides], operands: Sequence[JoinOperand], block: Block
) -> tuple[KeyColumns, frozenset[Rule]]:
    """The key of a block's events, and the rules that it makes superfluous."""
    numbers: list[list[Array]] = [[] for _ in operands]
    places: list[list[int]] = [[] for _ in operands]
    said: set[Rule] = set()
    for equality in equalities:
        columns, exact = _numbered([_values(expr, block) for expr in equality.sides])
        said |= set(equality.rules) if exact else set()
        for number, (expr, some) in enumerate(zip(equality.sides, columns, strict=True)):
            (name,) = variables(expr)
            numbers[number] += some
            places[number] += [operands[number].variables.index(name)] * len(some)
    return KeyColumns(tuple(map(tuple, numbers)), tuple(map(tuple, places))), frozenset(said)


def _values(expr: Expr, block: Block) -> Vector:
    def leaf(one: Expr) -> Vector:
        assert isinstance(one, Attribute)
        return block.columns[one.column]

    return evaluate(expr, leaf).broadcast(len(block))


def _numbered(vectors: list[Vector]) -> tuple[list[list[Array]], bool]:
    """For each vector columns of integers that are equal where the values are, and whether only there."""
    valid = [_known(vector) for vector in vectors]
    exact = len({vector.values.dtype == np.float64 for vector in vectors}) == 1
    vectors = aligned(vectors)
    if any(vector.dictionary is not None for vector in vectors):
        vectors = unify(vectors)
    if not exact:
        vectors = [to_doubles(replace(vector, valid=None)) for vector in vectors]
    values = [_integers(vector.values) for vector in vectors]
    if any(some.dtype == object for some in values):
        dense = np.unique(np.concatenate([some.astype(object) for some in values]), return_inverse=True)[1]
        values = np.split(dense.reshape(-1), len(values))
    if all(some.all() for some in valid):
        return [[some] for some in values], exact
    columns = [
        [np.where(known, some, 0), np.where(known, 0, -1 - number)]
        for number, (some, known) in enumerate(zip(values, valid, strict=True))
    ]
    return columns, exact


def _known(vector: Vector) -> Array:
    if vector.kind is Kind.NULL:
        return np.zeros(len(vector), np.bool_)
    return np.ones(len(vector), np.bool_) if vector.valid is None else vector.valid


def _integers(values: Array) -> Array:
    """Numbers as integers, one for each value."""
    if values.dtype == np.float64:
        return np.ascontiguousarray(values + 0.0).view(np.int64)  # −0.0 is 0.0
    return values if values.dtype == object else values.astype(np.int64)


# ------------------------------------------------------------------------------------------------ numbers


class KeyTable(NamedTuple):
    """Key number i is `rows[i]`; `table` holds numbers by hash, −1 where it is free."""

    rows: Array
    table: Array


class KeyNumbers:
    """The keys so far."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self._columns = columns
        self._keys = KeyTable(np.empty((FIRST_KEYS, columns), np.int64), np.full(2 * FIRST_KEYS, -1, np.int64))

    def numbers(self, keys: Array) -> Array:
        """A number for each row; rows not seen before get the next ones."""
        if self._columns == 0:
            self.count = 1
            return np.zeros(len(keys), np.int64)
        self._make_room(len(keys))
        found = np.empty(len(keys), np.int64)
        self.count = int(_number(np.ascontiguousarray(keys, np.int64), self._keys, self.count, found))
        return found

    def _make_room(self, more: int) -> None:
        size = len(self._keys.rows)
        if self.count + more > size:
            while self.count + more > size:
                size *= 2
            rows = np.empty((size, self._columns), np.int64)
            rows[: self.count] = self._keys.rows[: self.count]
            self._keys = KeyTable(rows, np.full(2 * size, -1, np.int64))
            _number(rows[: self.count].copy(), self._keys, 0, np.empty(self.count, np.int64))


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _number(keys: Array, known: KeyTable, count: int, found: Array) -> int:
    """Number the rows of `keys`; how many keys there are then."""
    for row in range(len(keys)):
        place = _place(keys, row, known)
        if known.table[place] < 0:
            known.table[place] = count
            for column in range(keys.shape[1]):
                known.rows[count, column] = keys[row, column]
            count += 1
        found[row] = known.table[place]
    return count


@njit(**INSIDE)
def _place(keys: Array, row: int, known: KeyTable) -> int:
    """Where the key of a row stands in the table, or would."""
    mask = len(known.table) - 1
    place = _hash(keys, row) & mask
    while known.table[place] >= 0:
        same = True
        for column in range(keys.shape[1]):
            if known.rows[known.table[place], column] != keys[row, column]:
                same = False
        if same:
            break
        place = (place + 1) & mask
    return place


@njit(**INSIDE, wraps=True)
def _hash(keys: Array, row: int) -> Any:
    code = np.uint64(1)
    for column in range(keys.shape[1]):
        code = (code ^ np.uint64(keys[row, column])) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    return np.int64(code >> np.uint64(1))
