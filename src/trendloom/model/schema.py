"""What a stream's columns are: names, kinds, and which of them hold the time and the type.

A `Schema` is all that the binder needs of the data, so a query can be checked without reading an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trendloom.model.imprecision import Imprecision
from trendloom.model.time import UTC, TimeAxis


class Kind(Enum):
    """What a value is, as far as the language distinguishes it."""

    INT = "integer"
    DECIMAL = "decimal"  # a number with a fixed count of digits after the point: exact, unlike FLOAT
    FLOAT = "number"
    STRING = "string"
    BOOL = "boolean"
    TIME = "time"
    DURATION = "duration"
    NULL = "null"  # a column whose values are all NULL: fits everywhere
    OTHER = "nested or binary value"  # lists, structs, bytes: carried along, not computed with

    def __str__(self) -> str:
        return self.value

    @property
    def numeric(self) -> bool:
        return self in (Kind.INT, Kind.DECIMAL, Kind.FLOAT, Kind.NULL)

    @property
    def exact(self) -> bool:
        """Whether values are whole numbers of some unit, which are added up exactly."""
        return self in (Kind.INT, Kind.DECIMAL)


DIGITS_IN_WORD = 18
"""Integers of so many digits fit 64 bits."""

RESERVED = ("events", "var", "window_start", "window_end", "query", "score", "confidence")
"""Names of result columns: an input column or a value of RETURN may not be called so."""


@dataclass(frozen=True)
class Column:
    """A column. A decimal has `digits` in all, `scale` of them after the point.

    `zone` is where times written as text are local that are compared with it (None: UTC).
    """

    name: str
    kind: Kind
    scale: int = 0
    digits: int = 0
    zone: str | None = None

    @property
    def wide(self) -> bool:
        """Whether a decimal, counted in its last digit, may be beyond 64 bits."""
        return self.kind is Kind.DECIMAL and self.digits > DIGITS_IN_WORD


@dataclass(frozen=True)
class Schema:
    """The columns of a stream. `types` is None where the possible event types are not listed.

    `present` holds the types that the data was seen to contain, if that is known; it only feeds warnings.
    `imprecision`: how far times may be from the truth (None: not at all); with bounds in it, `time` names no column.
    `order` names the columns that order events of equal time; `zone`: of times that do not name theirs (None: UTC).
    """

    columns: tuple[Column, ...]
    time: str = "time"
    type: str = "type"
    axis: TimeAxis = TimeAxis.integer()
    types: frozenset[str] | None = None
    present: frozenset[str] | None = None
    imprecision: Imprecision | None = None
    order: tuple[str, ...] = ()
    zone: str | None = None

    def zone_of(self, name: str) -> str:
        """The zone in which a time is read that is written as text and compared with a column."""
        wanted = self.times if name == self.time else name
        return next((column.zone for column in self.columns if column.name == wanted), None) or UTC

    @property
    def imprecise(self) -> bool:
        return self.imprecision is not None

    @property
    def bounds(self) -> tuple[str, str] | None:
        """The columns of bounds; None: there is a column of times."""
        if self.imprecision is None or self.imprecision.low is None or self.imprecision.high is None:
            return None
        return self.imprecision.low, self.imprecision.high

    @property
    def times(self) -> str:
        """The column that has the type of times: that of the times, or of their lower bounds."""
        return self.time if self.bounds is None else self.bounds[0]

    @property
    def said_in(self) -> tuple[str, ...]:
        """The columns of the time of an event: its time, or bounds, and its error."""
        error = None if self.imprecision is None else self.imprecision.error_column
        return (*(self.bounds or (self.time,)), *([] if error is None else [error]))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def kind(self, name: str) -> Kind | None:
        """The kind of a column, or None where there is none of that name."""
        column = self.column(name)
        return None if column is None else column.kind

    def scale(self, name: str | None) -> int:
        """Digits after the point in a column; 0 where it is not of decimals."""
        column = None if name is None else self.column(name)
        return 0 if column is None else column.scale
