"""The result of a simulator: events, the marks of a user on the chart, and the true reason.

An attribute is a pair (type, attribute), or (type, None) for how many events there are; every windowed function of it
is the same reason. Attributes that one thing moves together are one *cause*: naming one of them is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import OptionError, did_you_mean
from trendloom.expr.arrays import Array

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
    """Return a name of this simulator, or raise an error that lists them."""
    known = list(there)
    if name not in known:
        raise OptionError(f"the simulator has no {what} '{name}'", hint=did_you_mean(name, known))


def check_least(what: str, number: int, least: int) -> None:
    if number < least:
        raise OptionError(f"a simulation with {number} {what} has no anomaly to explain", hint=f"take {least} or more")


# One table of all events from columns by type: a column that a type does not have is NULL there.
#
# Cost: one sort by time, O(n log n).


SECOND = 1_000_000
"""Ticks of a second: times are timestamps in microseconds."""


def event_table(parts: Sequence[tuple[str, Array, Mapping[str, Any]]]) -> pa.Table:
    """Events in time order, from (type, times in ticks, columns by name) of each type."""
    times = np.concatenate([time for _, time, _ in parts])
    types = np.repeat(np.arange(len(parts), dtype=np.int32), [len(time) for _, time, _ in parts])
    tables = [pa.table(dict(columns)) for _, _, columns in parts]
    attributes = pa.concat_tables(tables, promote_options="default")
    whole = pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "type": words(types, [name for name, _, _ in parts]),
            **{name: attributes[name] for name in attributes.column_names},
        }
    )
    return whole.take(pa.array(np.argsort(times, kind="stable"))).combine_chunks()


def words(codes: Array, names: Sequence[str]) -> pa.Array:
    """A text column from numbers of names."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(list(names))).cast(pa.string())


# Noise that looks like measurements: values remember the ones before, and follow what drives them with a delay.
#
# Both are the recursion yₜ = a·yₜ₋₁ + xₜ, summed by doubling: after step k every value holds its last 2ᵏ inputs.
# Cost: O(n log n) on whole columns.


def remembered(inputs: Array, memory: float) -> Array:
    """yₜ = memory · yₜ₋₁ + inputsₜ along the first axis, from 0 before the first."""
    found = np.array(inputs, dtype=np.float64)
    step, weight = 1, memory
    while step < len(found) and weight > 1e-12:
        found[step:] += weight * found[:-step]  # the right side is evaluated before it is added
        step, weight = 2 * step, weight * weight
    return found


def wandering(random: np.random.Generator, shape: tuple[int, ...], memory: float) -> Array:
    """Noise of variance 1 whose neighbours correlate by `memory`, along the first axis."""
    shocks = random.normal(0.0, np.sqrt(1.0 - memory * memory), shape)
    shocks[0] /= np.sqrt(1.0 - memory * memory)  # as if it had always been wandering
    return remembered(shocks, memory)


def followed(inputs: Array, steps: float) -> Array:
    """Values that follow their input with a delay of about `steps`, and start at it."""
    memory = float(np.exp(-1.0 / steps))
    shares = (1.0 - memory) * inputs
    shares[0] = inputs[0]
    return remembered(shares, memory)
