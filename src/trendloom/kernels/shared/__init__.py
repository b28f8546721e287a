"""Queries that are counted together: sequences of steps, windows, and what is measured at which steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import gcd

from trendloom.kernels.contract.aggregates import Measure
from trendloom.model.time import Window

Multiples = tuple[tuple[str, int], ...]
"""Measures of a query by name, each so many times the number of its matches."""
FOREVER = 2**62
"""The length of a window without an end."""
NODE, LANE = 4.0, 1.0
"""What a node costs for each event with its letter, beside each of its lanes."""
MOST_LANES = 64


@dataclass(frozen=True)
class CountedStep:
    """One part of a sequence: an event with a letter, or one or more of them. Letters are numbers.

    `forbidden`: letters of events that must not lie between the step before and this one.
    """

    letter: int
    repeats: bool = False
    forbidden: frozenset[int] = frozenset()


@dataclass(frozen=True)
class StepMeasure:
    """A measure over the events of some steps of a query."""

    measure: Measure
    steps: tuple[int, ...]


@dataclass(frozen=True)
class CountedQuery:
    """A sequence whose matches are counted; `measures` are added up beside, `multiples` are made of the count."""

    window: Window
    steps: tuple[CountedStep, ...]
    multiples: Multiples = ()
    measures: tuple[StepMeasure, ...] = ()

    def reversed(self) -> CountedQuery:
        """The same query over a stream in which time runs backwards."""
        last = len(self.steps) - 1
        after = [step.forbidden for step in self.steps[1:]] + [frozenset()]
        steps = [replace(step, forbidden=gap) for step, gap in zip(self.steps, after, strict=True)]
        measures = [replace(one, steps=tuple(last - at for at in one.steps)) for one in self.measures]
        return replace(self, steps=tuple(steps[::-1]), measures=tuple(measures))


@dataclass(frozen=True)
class SharedSteps:
    """Neighbouring steps that are counted once for several queries, and where they stand: (query, its first step)."""

    steps: tuple[CountedStep, ...]
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Family:
    """Windows that share what is counted in them: they begin at times `grid · n + offset`.

    What is counted since a moment is the result of every window that began then, each when it ends. So a family has a
    lane for every moment of its grid since which the longest of its windows has not ended. Where time runs backwards,
    windows begin where they end, and the grid does not pass through zero.
    """

    windows: tuple[Window, ...]
    grid: int
    offset: int = 0

    @property
    def reach(self) -> int:
        return max(within(window) for window in self.windows)

    @property
    def lanes(self) -> int:
        return 1 if self.grid == FOREVER else -(-self.reach // self.grid)


def within(window: Window) -> int:
    """The length of a window."""
    return FOREVER if window.within is None or window.slide is None else window.within


def slide(window: Window) -> int:
    return FOREVER if window.within is None or window.slide is None else window.slide


def family_of(windows: Iterable[Window], *, backwards: bool = False) -> Family | None:
    """The family of some windows, if they can be one."""
    listed = tuple(dict.fromkeys(windows))
    endless = {within(window) == FOREVER for window in listed}
    if endless == {True}:
        return Family(listed, FOREVER)
    grid = gcd(*(slide(window) for window in listed))
    offsets = {-within(window) % grid if backwards else 0 for window in listed}
    found = Family(listed, grid, offsets.pop())
    return None if offsets or True in endless or (len(listed) > 1 and found.lanes > MOST_LANES) else found


def families_of(queries: Sequence[CountedQuery], *, backwards: bool = False) -> list[Family]:
    """The windows of all queries in families, chosen to add little: windows join one by one, or stay alone.

    Cost: O(windows²) unions of prefixes.
    """
    prefixes: dict[Window, set[object]] = {}
    for query in queries:
        some = prefixes.setdefault(query.window, set())
        some.update(query.steps[: at + 1] for at in range(len(query.steps)))
    found: list[tuple[Family, set[object]]] = []
    for window in sorted(prefixes, key=lambda one: (slide(one), within(one))):
        alone = family_of([window], backwards=backwards)
        assert alone is not None
        best, saved = None, 0.0
        for at, (family, nodes) in enumerate(found):
            joint = family_of([*family.windows, window], backwards=backwards)
            if joint is None:
                continue
            apart = _cost(family, nodes) + _cost(alone, prefixes[window])
            gain = apart - _cost(joint, nodes | prefixes[window])
            if gain > saved:
                best, saved = (at, joint), gain
        if best is None:
            found.append((alone, prefixes[window]))
        else:
            at, joint = best
            found[at] = joint, found[at][1] | prefixes[window]
    return [family for family, _ in found]


def _cost(family: Family, nodes: set[object]) -> float:
    return len(nodes) * (NODE + LANE * family.lanes)
