"""The same for every query of a workload: what is wrong with some of them is one error that names them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from trendloom.errors import BindError, QueryError


class Named(Protocol):
    """A query, or its plan."""

    @property
    def name(self) -> str | None: ...


One = TypeVar("One", bound=Named)
Made = TypeVar("Made")


def for_every_query(queries: Sequence[One], make: Callable[[One], Made]) -> list[Made]:
    """What is made of each query, if none of them is refused."""
    made: list[Made] = []
    wrong: dict[str, QueryError] = {}
    for query in queries:
        try:
            made.append(make(query))
        except QueryError as error:
            if len(queries) == 1:
                raise
            wrong[str(query.name)] = error.of_query(query.name)
    if wrong:
        raise _together(wrong, len(queries))
    return made


def _together(wrong: Mapping[str, QueryError], among: int) -> QueryError:
    """The one error there is, or one of several, which is of the kind that other columns may heal if any of them is."""
    first, *more = parts = list(wrong.values())
    if not more:
        return first
    kind = BindError if any(isinstance(error, BindError) for error in parts) else type(first)
    message = f"{len(parts)} of {among} queries are refused: {', '.join(wrong)}"
    return kind(message, first.span, text=first.text, parts=parts)
