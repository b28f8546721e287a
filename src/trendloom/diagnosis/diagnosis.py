"""Diagnosis: the reason of an anomaly, and all that a person needs to check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from trendloom.diagnosis.features import Feature, FeatureTable, Floats, Truths
from trendloom.diagnosis.formula import AbnormalRange, Formula, clauses_of, show_number
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


# A diagnosis in words: what the features of the reason did while things were abnormal, and what should be known.


def sentence(
    reasons: Mapping[Feature, tuple[AbnormalRange, ...]],
    values: Mapping[Feature, Floats],
    labels: Mapping[Feature, Truths],
) -> str:
    """What happened, one part per feature; `values` and `labels` are those of its windows."""
    parts = [part_of_sentence(feature, ranges, values[feature], labels[feature]) for feature, ranges in reasons.items()]
    return "While it was abnormal, " + "; ".join(parts) + "."


def part_of_sentence(feature: Feature, ranges: Sequence[AbnormalRange], values: Floats, abnormal: Truths) -> str:
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


def chance_notes(windows: Sequence[tuple[str, int, int, int]], least: float) -> Iterator[str]:
    """Where few windows make perfect separation likely: of (window, features, abnormal and reference windows).

    Of random numbers, 2 orders of all that there are separate the classes.
    """
    for length, features, abnormal, reference in windows:
        expected = 2 * features / comb(abnormal + reference, abnormal)
        if expected >= least:
            yield (
                f"{abnormal} abnormal and {reference} reference windows of {length} are few for {features:,} features: "
                f"about {expected:.2g} of them would separate perfectly by chance alone; "
                "mark longer intervals or take shorter windows"
            )
