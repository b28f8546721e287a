"""From features and periods to a reason: rank by reward, cut at the leap, validate, cluster, and draw boundaries.

Each step leaves features out and says why; what is left is a conjunction, one feature for each thing that was unlike
the reference. Features of several window sizes are ranked together, each by the windows of its own table; they are
compared with each other at the starts of the shortest windows.

Cost: that of `reward` for all features; every later step sees only those that are left.
See Zhang, "High-Performance Complex Event Processing for Decision Analytics", 5.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.diagnosis import CandidateFeature, Diagnosis, sentence
from trendloom.diagnosis.features import Feature, FeatureTable, Floats, Truths
from trendloom.diagnosis.formula import AbnormalRange, formula_of, values_at
from trendloom.diagnosis.periods import LabelledWindows, Period, check_periods, labelled
from trendloom.diagnosis.request import Progress, Settings, ignore_progress
from trendloom.diagnosis.reward import abnormal_ranges, rewards
from trendloom.errors import DataError

SAME = "the same values in both"
NO_RELATED = "there are no related partitions, so false positives were not looked for"
NONE_LABELLED = "no period of a related partition could be labelled, so false positives were not looked for"


@dataclass(frozen=True, eq=False)
class LabelledTables:
    """Tables of features, one per window size, shortest first, with the annotated windows of each and with all."""

    tables: tuple[FeatureTable, ...]
    annotated: tuple[LabelledWindows, ...]
    everything: tuple[LabelledWindows, ...]

    def of(self, feature: Feature) -> tuple[Floats, Truths]:
        """A feature's values over all labelled windows, and which of them are abnormal."""
        for table, windows in zip(self.tables, self.everything, strict=True):
            if table.window == feature.window:
                return table.take([feature]).values[0, windows.places], windows.abnormal
        raise DataError(f"there are no windows for '{feature.name}'")


def diagnose(
    tables: Sequence[FeatureTable],
    periods: Sequence[Period],
    related: Sequence[Period] | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    progress: Progress = ignore_progress,
) -> Diagnosis:
    """The reason why the abnormal periods are unlike the reference.

    `tables`: features over all these periods, one table per window size. `related`: labelled periods of related
    partitions (`periods.related_periods`), None where there are none; features that do not hold there are false
    positives.
    """
    check_periods(periods)
    progress("rewards", 0.0)
    observed = _labelled(tables, periods, related or ())
    candidates = _ranked(observed, settings)
    progress("related partitions", 0.6)
    candidates = _leap(candidates, settings)
    candidates = _validated(observed, candidates, settings) if related else candidates
    progress("correlations", 0.8)
    candidates = _clustered(observed, candidates, settings)
    progress("boundaries", 0.9)
    kept = [one.feature for one in candidates if one.kept]
    ranges = {one: abnormal_ranges(*observed.of(one), settings, whole=one.function == "count") for one in kept}
    text = _in_words(observed, candidates[0], ranges)
    windows = tuple(
        table.take(some) for table in observed.tables if (some := [one for one in kept if one.window == table.window])
    )
    notes = [*_chance_notes(observed, settings)]
    if not related:
        notes.append(NO_RELATED if related is None else NONE_LABELLED)
    progress("done", 1.0)
    return Diagnosis(
        formula_of(ranges), ranges, tuple(candidates), text, (*periods, *(related or ())),
        None if related is None else len(related), tuple(notes), windows,
    )  # fmt: skip


def _labelled(tables: Sequence[FeatureTable], periods: Sequence[Period], related: Sequence[Period]) -> LabelledTables:
    ordered = tuple(sorted(tables, key=lambda table: table.window))
    if not any(len(table) for table in ordered):
        raise DataError("there are no features: no events lie in the stretch of time", hint="mark other times")
    annotated = tuple(labelled(table, periods) for table in ordered)
    return LabelledTables(ordered, annotated, tuple(labelled(table, [*periods, *related]) for table in ordered))


# ------------------------------------------------------------------------------------------------- the steps


def _ranked(observed: LabelledTables, settings: Settings) -> list[CandidateFeature]:
    """All features by their reward; those that cannot be a reason are out."""
    found = []
    for table, windows in zip(observed.tables, observed.annotated, strict=True):
        found_rewards = rewards(table.values[:, windows.places], windows.abnormal)
        figures = zip(*(column.tolist() for column in found_rewards), strict=True)
        windows_of = {"abnormal": int(windows.abnormal.sum()), "reference": int((~windows.abnormal).sum())}
        for feature, (reward, abnormal, reference, segments) in zip(table.features, figures, strict=True):
            why = _unfit({"abnormal": abnormal, "reference": reference}, windows_of, segments, settings)
            found.append(CandidateFeature(feature, reward, kept=not why, why=why))
    return sorted(found, key=lambda one: (-one.reward, one.feature.place))


def _unfit(counts: Mapping[str, int], windows: Mapping[str, int], segments: int, settings: Settings) -> str:
    """Why a feature cannot be a reason, whatever its reward: too few values, or the same values in both classes."""
    for kind, count in counts.items():
        if count == 0:
            return f"no values in the {kind} windows"
    for kind, count in counts.items():
        if count < settings.least_coverage * windows[kind]:
            return f"values in {count:,} of {windows[kind]:,} {kind} windows only"
    return SAME if segments == 1 else ""


def _leap(candidates: Sequence[CandidateFeature], settings: Settings) -> list[CandidateFeature]:
    ranked = np.array([one.reward for one in candidates if one.kept])
    before = keep_before_leap(ranked, settings)
    lowest = ranked[before - 1] if before else 0.0
    below = f"below the leap at {lowest:.2f}" if before else f"less reward than {settings.least_reward}"
    return [_out(one, below) if one.kept and (not before or one.reward < lowest) else one for one in candidates]


def _validated(
    observed: LabelledTables, candidates: Sequence[CandidateFeature], settings: Settings
) -> list[CandidateFeature]:
    """Rewards again, over the windows of related partitions, too."""
    validated: dict[Feature, tuple[float, int]] = {}
    for table, windows in zip(observed.tables, observed.everything, strict=True):
        some = [one.feature for one in candidates if one.kept and one.feature.window == table.window]
        got = rewards(table.take(some).values[:, windows.places], windows.abnormal)
        validated |= zip(some, zip(got.reward.tolist(), got.segments.tolist(), strict=True), strict=True)
    best = max((reward for reward, segments in validated.values() if segments > 1), default=0.0)
    return [_judged(one, *validated[one.feature], best, settings) if one.kept else one for one in candidates]


def _judged(
    candidate: CandidateFeature, reward: float, segments: int, best: float, settings: Settings
) -> CandidateFeature:
    found = replace(candidate, validated=reward)
    if segments <= 1 or reward < settings.validated_share * candidate.reward:
        return _out(found, f"false positive: {reward:.2f} over related partitions")
    if reward < settings.validated_best * best:
        return _out(found, f"less sure: {reward:.2f} over related partitions, where others have {best:.2f}")
    return found


def _clustered(
    observed: LabelledTables, candidates: Sequence[CandidateFeature], settings: Settings
) -> list[CandidateFeature]:
    """One feature for each cluster."""
    left = [one for one in candidates if one.kept]
    if not left:
        return list(candidates)
    features = [one.feature for one in left]
    times = observed.tables[0].starts[observed.everything[0].places]
    by_feature = values_at(features, times, observed.tables)
    values = np.array([by_feature[feature] for feature in features])
    best = np.array([one.reward if one.validated is None else one.validated for one in left])
    apart = distances_of_classes(values, observed.everything[0].abnormal)
    clusters = correlation_clusters(values, features, best, settings.correlation, apart)
    found = dict[Feature, CandidateFeature]()
    for row, one in enumerate(left):
        number = int(clusters.number[row])
        one = replace(one, cluster=number + 1)
        representative = int(clusters.representative[number])
        if row != representative:
            one = _out(one, f"correlates with {features[representative].name} ({clusters.correlation[row]:.2f})")
        found[one.feature] = one
    return [found.get(one.feature, one) for one in candidates]


def _out(candidate: CandidateFeature, why: str) -> CandidateFeature:
    return replace(candidate, kept=False, why=why)


# ------------------------------------------------------------------------------------------------ the answer


def _in_words(
    observed: LabelledTables, best: CandidateFeature, ranges: Mapping[Feature, tuple[AbnormalRange, ...]]
) -> str:
    if ranges:
        return sentence(ranges, {feature: observed.of(feature) for feature in ranges})
    text = f"No feature tells the abnormal windows from the reference; the best is {best.feature.name} "
    return text + f"with a reward of {best.reward:.2f}" + (f" ({best.why})." if best.why else ".")


def _chance_notes(observed: LabelledTables, settings: Settings) -> Iterator[str]:
    """Where few windows make perfect separation by chance likely: of random numbers, 2 of all orders separate."""
    for table, windows in zip(observed.tables, observed.annotated, strict=True):
        abnormal = int(windows.abnormal.sum())
        reference = len(windows.abnormal) - abnormal
        expected = 2 * len(table) / comb(abnormal + reference, abnormal)
        if expected >= settings.chance:
            yield (
                f"{abnormal} abnormal and {reference} reference windows of {table.length} are few for {len(table):,} "
                f"features: about {expected:.2g} of them would separate perfectly by chance alone; "
                "mark longer intervals or take shorter windows"
            )


# ------------------------------------------------------------------------------------------------- clusters
#
# Two features are linked if they correlate as strongly as the threshold, of either sign, over the windows where both
# have values. Clusters are the connected components. The representative has the highest reward (over related partitions
# where there are some); many are equal, at 1. Of equals it is the simplest, then the one whose classes lie farthest
# apart, for its boundary is the safest in other runs, then the first by name.
# Cost: one product of matrices, features² · windows, for the features that are left.


@dataclass(frozen=True, eq=False)
class FeatureClusters:
    """`number[f]`: the cluster of feature f, from 0, those with the best representatives first; `representative[c]`:
    the feature that represents cluster c; `correlation`: of each feature with its representative."""

    number: npt.NDArray[np.intp]
    representative: npt.NDArray[np.intp]
    correlation: Floats


def correlation_clusters(
    values: Floats, features: Sequence[Feature], rewards: Floats, threshold: float, apart: Floats | None = None
) -> FeatureClusters:
    """The clusters of features with these values at common points of time; `apart`: as of `distances_of_classes`."""
    correlation = correlations(values)
    found = components(np.abs(correlation) >= threshold)
    apart = np.zeros(len(features)) if apart is None else apart
    ranked = sorted(
        range(len(features)),
        key=lambda row: (-rewards[row], features[row].place[:3], -apart[row], features[row].place),
    )
    best: dict[int, int] = {}
    for row in ranked:
        best.setdefault(int(found[row]), row)
    order = {cluster: number for number, cluster in enumerate(best)}
    number = np.array([order[int(cluster)] for cluster in found], np.intp)
    representative = np.array(list(best.values()), np.intp)
    return FeatureClusters(number, representative, correlation[np.arange(len(number)), representative[number]])


def components(linked: Truths) -> npt.NDArray[np.intp]:
    """The number of the connected component of each node, of a symmetric matrix of links; each row is read once."""
    number = np.full(len(linked), -1, np.intp)
    for start in range(len(linked)):
        if number[start] < 0:
            number[start], waiting = start, [start]
            while waiting:
                near = np.flatnonzero(linked[waiting.pop()] & (number < 0))
                number[near] = start
                waiting += near.tolist()
    return number


def distances_of_classes(values: Floats, abnormal: Truths) -> Floats:
    """The distance of the classes of each row: the difference of their means in units of their deviations, times the
    share of columns that have a value. Infinite where neither class varies; 0 where one has no value."""
    there = np.isfinite(values)
    filled = np.where(there, values, 0.0)
    scale = np.maximum(np.abs(filled).max(axis=1, keepdims=True, initial=0.0), np.finfo(float).tiny)
    filled = filled / scale
    means, spreads = [], []
    for some in (abnormal, ~abnormal):
        count = np.maximum(there[:, some].sum(axis=1), 1)
        mean = filled[:, some].sum(axis=1) / count
        off = np.where(there[:, some], filled[:, some] - mean[:, np.newaxis], 0.0)
        means.append(mean)
        spreads.append(np.sqrt((off * off).sum(axis=1) / count))
    both = there[:, abnormal].any(axis=1) & there[:, ~abnormal].any(axis=1)
    gap, spread = np.where(both, np.abs(means[0] - means[1]), 0.0), spreads[0] + spreads[1]
    found = np.divide(gap, spread, out=np.where(gap > 0, np.inf, 0.0), where=spread > 1e-12)
    return np.asarray(np.round(found * there.mean(axis=1), 6))


def correlations(values: Floats) -> Floats:
    """Pearson's correlation of all pairs of rows, each over the columns where both have finite values.

    A row that does not vary there correlates with nothing but itself.
    """
    there = np.isfinite(values)
    filled = np.where(there, values, 0.0)
    # any shift and scale will do: these keep sums of squares from losing their digits
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    filled = np.where(there, filled - filled.sum(axis=1, keepdims=True) / count, 0.0)
    scale = np.abs(filled).max(axis=1, keepdims=True, initial=0.0)
    filled = np.divide(filled, scale, out=np.zeros_like(filled), where=scale > 0)
    both = there.astype(np.float64)
    points = both @ both.T
    sums, squares, products = filled @ both.T, (filled * filled) @ both.T, filled @ filled.T
    points = np.maximum(points, 1.0)
    variance = squares / points - (sums / points) ** 2
    spread = np.sqrt(np.maximum(variance, 0.0) * np.maximum(variance.T, 0.0))
    found = np.divide(
        products / points - sums * sums.T / points**2, spread, out=np.zeros_like(spread), where=spread > 1e-12
    )
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


# ------------------------------------------------------------------------------------------------- the leap
#
# Where the ranking of features drops sharply, the features below say little about the anomaly. Of all drops between
# neighbours of the ranking the deepest is the leap, the last one where several are as deep. A drop from below
# `least_reward` is no leap, for such features are noise already; and where no drop is as deep as `least_leap` there is
# none, and all features with at least that reward stay.


def keep_before_leap(ranked: Floats, settings: Settings = Settings()) -> int:  # noqa: B008 (frozen)
    """The number of features of a ranking, best first, before its leap."""
    good = int(np.count_nonzero(ranked >= settings.least_reward))
    if good == 0:
        return 0
    # rounded, so that equal drops are equal
    drops = np.round(ranked[:good] - np.r_[ranked[1:], 0.0][:good], 9)
    deepest = good - 1 - int(np.argmax(drops[::-1]))
    return deepest + 1 if drops[deepest] >= settings.least_leap else good
