"""What a simulator returns: events, what a user would mark on the chart, and the reason that is true.

An attribute is a pair (type, attribute), or (type, None) for how many events there are; every windowed function of it
is the same reason. Attributes that one thing moves together are one *cause*: naming one of them is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from trendloom.errors import OptionError, did_you_mean

Attribute = tuple[str, str | None]
Cause = frozenset[Attribute]


@dataclass(frozen=True, order=True)
class SimulatedStretch:
    """An interval [low, high) of one partition, in microseconds since 1970."""

    partition: str
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Simulation:
    """A stream with an anomaly, the query whose result shows it, and its ground truth.

    `key` is the partition attribute, `dimensions` say what partitions have in common. `spans` holds every partition
    from its first event to its last; `related` those that match the annotated one in all dimensions, in time order.
    """

    name: str
    events: pa.Table
    query: str
    key: str
    dimensions: tuple[str, ...]
    abnormal: tuple[SimulatedStretch, ...]
    reference: tuple[SimulatedStretch, ...]
    truth: tuple[Cause, ...]
    related: tuple[str, ...]
    spans: tuple[SimulatedStretch, ...]

    @property
    def partition(self) -> str:
        """The partition that is annotated as abnormal."""
        return self.abnormal[0].partition


def check_choice(what: str, name: str, there: Iterable[str]) -> None:
    """A name that a simulator knows, or an error that says which there are."""
    known = list(there)
    if name not in known:
        raise OptionError(f"the simulator has no {what} '{name}'", hint=did_you_mean(name, known))


def check_least(what: str, number: int, least: int) -> None:
    if number < least:
        raise OptionError(f"a simulation with {number} {what} has no anomaly to explain", hint=f"take {least} or more")
