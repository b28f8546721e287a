"""The result of a diagnosis: the reason of an anomaly, and all that a person needs to check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.diagnosis.features import Feature, FeatureTable, Floats, Truths
from trendloom.diagnosis.formula import AbnormalRange, Formula, clauses_of, show_number
from trendloom.diagnosis.periods import Period


@dataclass(frozen=True)
class CandidateFeature:
    """A feature that was ranked, and the outcome.

    `validated`: its reward over related partitions, None where it was not computed; `cluster`: the number of its
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


# -------------------------------------------------------------------------------------------- in words


def sentence(
    reasons: Mapping[Feature, tuple[AbnormalRange, ...]],
    windows: Mapping[Feature, tuple[Floats, Truths]],
) -> str:
    """The reason in words, a part per feature; `windows`: its values over labelled windows, and which are abnormal."""
    parts = [_part_of_sentence(feature, ranges, *windows[feature]) for feature, ranges in reasons.items()]
    return "While it was abnormal, " + "; ".join(parts) + "."


def _part_of_sentence(feature: Feature, ranges: Sequence[AbnormalRange], values: Floats, abnormal: Truths) -> str:
    """`free memory (Memory.free mean over 30 s) stayed below 1.9e9 (1.4e9 to 1.6e9, reference: 2.2e9 to 3e9)`."""
    inside = np.full(len(values), True)
    for clause in clauses_of(feature, ranges):
        inside &= np.logical_or.reduce([predicate.holds(values) for predicate in clause])
    often, else_ = float(inside[abnormal].mean()), float(inside[~abnormal].mean())
    verb = "stayed" if often == 1 else f"was mostly ({_percent(often)} of the windows)"
    seen = f"{_span(values[abnormal])}, reference: {_span(values[~abnormal])}"
    also = f"; {_percent(else_)} of it is in the same range" if else_ > 0 else ""
    where = " or ".join(_where(one, feature.function == "count") for one in ranges)
    return f"{feature.words} ({feature.name}) {verb} {where} ({seen}{also})"


def _where(found: AbnormalRange, counted: bool) -> str:
    low, high = show_number(found.low), show_number(found.high)
    if found.low == found.high:
        return f"at {low}"
    if found.low == -np.inf:
        return ("at 0" if found.high == 0 else f"at {high} or less") if counted else f"below {high}"
    if found.high == np.inf:
        return f"at {low} or more" if counted else f"above {low}"
    return f"between {low} and {high}"


def _span(values: Floats) -> str:
    """From the least to the greatest value, with three digits."""
    low, high = (show_number(float(f"{number:.3g}")) for number in (np.nanmin(values), np.nanmax(values)))
    return low if low == high else f"{low} to {high}"


def _percent(share: float) -> str:
    """Whole percents, but neither all nor nothing by rounding."""
    return f"{min(max(round(100 * share), 1), 99)} %"
