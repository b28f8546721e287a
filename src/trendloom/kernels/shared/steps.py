"""Queries that are counted together: sequences of steps, windows, and what is measured at which steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trendloom.kernels.measures import Measure
from trendloom.model.window import Window

Multiples = tuple[tuple[str, int], ...]
"""Measures of a query by name, each so many times the number of its matches."""


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
