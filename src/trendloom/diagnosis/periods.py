"""Periods: stretches of time of one partition that are known to be abnormal, or to be normal (the reference)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from trendloom.diagnosis.features import FeatureTable, Truths
from trendloom.errors import OptionError, option


@dataclass(frozen=True)
class Period:
    """[low, high) in ticks. `partition`: attributes and values of the partition; `annotated`: marked by a person.

    Periods that are not annotated are those of related partitions, labelled by likeness.
    """

    low: int
    high: int
    abnormal: bool
    partition: tuple[tuple[str, Any], ...] = ()
    annotated: bool = True

    @property
    def kind(self) -> str:
        return "abnormal" if self.abnormal else "reference"

    def to_json(self) -> dict[str, Any]:
        """As JSON; values of partitions that JSON cannot hold are text."""
        partition = {
            name: v if isinstance(v, str | int | float | bool | None) else str(v) for name, v in self.partition
        }
        return {
            "low": self.low,
            "high": self.high,
            "abnormal": self.abnormal,
            "partition": partition,
            "annotated": self.annotated,
        }


@dataclass(frozen=True, eq=False)
class LabelledWindows:
    """The windows of a table that lie whole inside a period: their places, and whether they are abnormal.

    `annotated`: which of them a person has marked.
    """

    places: np.ndarray[Any, Any]
    abnormal: Truths
    annotated: Truths


def labelled(table: FeatureTable, periods: Sequence[Period]) -> LabelledWindows:
    """The windows of the periods. What a person has marked stands before labels by likeness; windows that those call
    both abnormal and not (partitions may overlap in time) are left out."""
    marked = {
        kind: np.zeros(len(table.starts), bool) for kind in ((True, True), (True, False), (False, True), (False, False))
    }
    for period in periods:
        inside = table.within(period.low, period.high)
        if period.annotated and not inside.any():
            raise OptionError(
                f"the {period.kind} interval [{period.low}, {period.high}) holds no whole window of {table.length}",
                hint=f"mark a longer interval, or take a shorter window: {option('windows')}",
            )
        marked[period.annotated, period.abnormal] |= inside
    annotated = marked[True, True] | marked[True, False]
    alike = ~annotated & (marked[False, True] ^ marked[False, False])
    places = np.flatnonzero(annotated | alike)
    abnormal = marked[True, True] | (alike & marked[False, True])
    return LabelledWindows(places, abnormal[places], annotated[places])


def check_periods(periods: Sequence[Period]) -> None:
    """Some of each kind, none empty, and no time that is both abnormal and reference."""
    for kind in (True, False):
        if not any(period.abnormal == kind for period in periods):
            name = "abnormal" if kind else "reference"
            raise OptionError(f"there is no {name} interval", hint=f"mark one: {option(name)}")
    for period in periods:
        if period.low >= period.high:
            raise OptionError(
                f"the {period.kind} interval [{period.low}, {period.high}) is empty", hint="its end comes first"
            )
    for one, other in product(
        (period for period in periods if period.abnormal), (period for period in periods if not period.abnormal)
    ):
        if one.low < other.high and other.low < one.high:
            raise OptionError(
                f"the abnormal interval [{one.low}, {one.high}) and the reference interval "
                f"[{other.low}, {other.high}) overlap",
                hint="features are made of the events of all partitions, so a window cannot be both: mark other times",
            )
