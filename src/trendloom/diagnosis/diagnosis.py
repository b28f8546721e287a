"""Diagnosis: the reason of an anomaly, and all that a person needs to check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.diagnosis.formula import AbnormalRange, Formula, show_number
from trendloom.diagnosis.periods import Period


@dataclass(frozen=True)
class CandidateFeature:
    """A feature that was looked at, and what became of it.

    `validated`: its reward over related partitions, None where it was not asked; `cluster`: the number of its
    correlation cluster, from 1; `why`: the reason why it was not kept, empty if it was.
    """

    feature: Feature
    reward: float
    validated: float | None = None
    cluster: int | None = None
    kept: bool = False
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "feature": self.feature.to_json(),
            "name": self.feature.name,
            "reward": self.reward,
            "validated": self.validated,
            "cluster": self.cluster,
            "kept": self.kept,
            "why": self.why,
        }


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The whole answer. `candidates`: all features, best first; `related`: how many periods of related partitions were
    labelled, None without; `windows`: the kept features over all windows of their tables, for pictures."""

    formula: Formula
    ranges: Mapping[Feature, tuple[AbnormalRange, ...]]
    candidates: tuple[CandidateFeature, ...]
    sentence: str
    periods: tuple[Period, ...]
    related: int | None
    notes: tuple[str, ...]
    windows: tuple[FeatureTable, ...]

    def __str__(self) -> str:
        return self.sentence

    @property
    def kept(self) -> tuple[CandidateFeature, ...]:
        """The features of the reason."""
        return tuple(candidate for candidate in self.candidates if candidate.kept)

    def boundary(self, feature: Feature) -> str:
        """The abnormal values of a kept feature: `<= 1.9e9`, `2 to 5 or >= 9`; of others nothing."""
        return " or ".join(show_range(one) for one in self.ranges.get(feature, ()))

    def to_json(self) -> dict[str, Any]:
        """As JSON, without the windows."""
        return {
            "sentence": self.sentence,
            "formula": self.formula.to_json(),
            "text": str(self.formula),
            "candidates": [one.to_json() | {"boundary": self.boundary(one.feature)} for one in self.candidates],
            "periods": [period.to_json() for period in self.periods],
            "related": self.related,
            "notes": list(self.notes),
        }


def show_range(found: AbnormalRange) -> str:
    """A range as a person reads it."""
    low, high = show_number(found.low), show_number(found.high)
    if found.low == found.high:
        return f"= {low}"
    if found.low == -float("inf"):
        return f"<= {high}"
    return f">= {low}" if found.high == float("inf") else f"{low} to {high}"
