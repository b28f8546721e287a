"""What was weighed for a group of queries that may share work, for EXPLAIN and its picture."""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.optimizer.sharing.choose_plan import SharingChoice


@dataclass(frozen=True)
class Way:
    """A way to answer all queries of a group, and how many seconds it should take; None: nobody knows."""

    name: str
    seconds: float | None = None


@dataclass(frozen=True)
class Considered:
    """The ways that were weighed, the first of which is that every query is answered by itself, and the one taken.

    `names`: of the queries; `words`: their patterns, letter by letter, for people to read. Queries in `choice`, which
    says what segments they have in common, are numbered as here.
    """

    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    choice: SharingChoice
    ways: tuple[Way, ...]
    taken: int
    unit: str = ""  # of what segments save
    measured: float | None = None  # how many seconds the way took, where it was tried

    @property
    def way(self) -> Way:
        return self.ways[self.taken]
