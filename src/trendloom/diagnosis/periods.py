"""Periods: stretches of time of one partition that are known to be abnormal, or to be normal (the reference).

A person marks some; others are found in related partitions: other runs of the same kind. A feature may separate the
marked intervals for reasons of its own (uptime grows), and then does so in other runs, too. So the intervals are
carried over to related partitions, and each is labelled by how its monitored series looks there.

- *Alignment*: an interval covers the same share of the other partition's time, or of its points, whichever the two
  partitions differ less in, relatively.
- *Distance* of two periods: the greater of the entropy distance of their values (the entropies of `reward`, scaled
  from values mixed as well as can be to values apart) and the normalised difference of their frequencies (points per
  time).
- *Labels*: hierarchical clustering (average linkage). How far apart the annotated anomaly and its reference are differs
  from series to series, so that is the scale: the tree is cut at a share of the height where the two meet. A period in
  a cluster with the anomaly is abnormal; one with the reference, or as far from the anomaly, is a reference. Others are
  uncertain, and left out: also those that are about as near to both, and all where anomaly and reference look alike.
- *Edges*: alignment is never exact, so both ends of a labelled period are left out, too.

Cost: distances of all pairs, with at most 64 quantiles of each period's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from trendloom.diagnosis.features import FeatureTable, Floats, Ticks, Truths
from trendloom.diagnosis.request import Settings
from trendloom.diagnosis.reward import rewards, worst_order_entropy
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
        return asdict(self) | {"partition": partition}


@dataclass(frozen=True, eq=False)
class LabelledWindows:
    """The windows of a table that lie whole inside a period: their places, and whether they are abnormal."""

    places: np.ndarray[Any, Any]
    abnormal: Truths


def labelled(table: FeatureTable, periods: Sequence[Period]) -> LabelledWindows:
    """The windows of the periods. Marks of a person take precedence over labels by likeness; windows that the latter
    label both abnormal and not (partitions may overlap in time) are left out."""
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
    return LabelledWindows(places, abnormal[places])


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


# --------------------------------------------------------------------------- periods of related partitions


SAMPLE = 64
"""Values of a period that are compared."""


@dataclass(frozen=True, eq=False)
class MonitoredSeries:
    """The series of a query in one partition: `values` at `times`, which ascend; from `first` to `last`, in ticks."""

    partition: tuple[tuple[str, Any], ...]
    first: int
    last: int
    times: Ticks
    values: Floats


@dataclass(frozen=True)
class RelatedPeriods:
    """Labelled periods of related partitions, how many were uncertain, and notes for the user."""

    periods: tuple[Period, ...]
    uncertain: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SampledPeriod:
    """A period of a series: its values, sorted, at most `SAMPLE` of them, and its points per tick."""

    low: int
    high: int
    values: Floats
    frequency: float


def related_periods(
    annotated: Sequence[tuple[Period, MonitoredSeries]], others: Sequence[MonitoredSeries], settings: Settings
) -> RelatedPeriods:
    """The annotated periods, each with the series it was marked in, found again in other partitions and labelled."""
    pairs = [(period, own, other, *difference(own, other)) for period, own in annotated for other in others]
    pairs.sort(key=lambda pair: pair[3])  # stable: partitions that differ least first
    notes = []
    if len(pairs) > settings.most_related:
        notes.append(
            f"of {len(pairs):,} periods in related partitions the {settings.most_related:,} were used whose partitions "
            "are most alike in length"
        )
    found = []
    for period, own, other, _, by_points in pairs[: settings.most_related]:
        low, high = aligned(period, own, other, by_points=by_points)
        if low < high:
            found.append((other, _sampled(other, low, high)))
    labels = _labels(
        [_sampled(own, period.low, period.high) for period, own in annotated],
        np.array([period.abnormal for period, _ in annotated]),
        [stretch for _, stretch in found],
        settings,
    )
    periods = tuple(
        Period(*_inner(stretch, settings), label, other.partition, annotated=False)
        for (other, stretch), label in zip(found, labels, strict=True)
        if label is not None
    )
    return RelatedPeriods(periods, len(pairs[: settings.most_related]) - len(periods), tuple(notes))


# ------------------------------------------------------------------------------------------------ alignment


def difference(own: MonitoredSeries, other: MonitoredSeries) -> tuple[float, bool]:
    """The relative difference of two partitions, in time or in points, whichever is less, and whether it is points."""
    in_time = _relative(own.last - own.first, other.last - other.first)
    in_points = _relative(len(own.times), len(other.times))
    return min(in_time, in_points), in_points < in_time


def aligned(period: Period, own: MonitoredSeries, other: MonitoredSeries, *, by_points: bool) -> tuple[int, int]:
    """Where an interval of one partition lies in another, [low, high); empty if it holds no point there."""
    if not by_points:
        length, others = max(own.last - own.first, 1), other.last - other.first
        low, high = (other.first + round((end - own.first) * others / length) for end in (period.low, period.high))
        return low, high
    ends = np.searchsorted(own.times, [period.low, period.high])
    count = len(other.times)
    low, high = (round(int(end) * count / max(len(own.times), 1)) for end in ends)
    if low >= high:
        return other.first, other.first
    after = int(other.times[high]) if high < count else int(other.times[-1]) + 1
    return int(other.times[low]), after


def _relative(own: float, other: float) -> float:
    return abs(other - own) / max(own, 1)


def _inner(stretch: SampledPeriod, settings: Settings) -> tuple[int, int]:
    """A period without its edges."""
    edge = round(settings.edge * (stretch.high - stretch.low))
    return stretch.low + edge, stretch.high - edge


# --------------------------------------------------------------------------------------------------- labels


def _sampled(series: MonitoredSeries, low: int, high: int) -> SampledPeriod:
    begin, end = np.searchsorted(series.times, [low, high])
    values = np.sort(series.values[begin:end])
    values = values[~np.isnan(values)]
    if len(values) > SAMPLE:
        values = values[np.linspace(0, len(values) - 1, SAMPLE).round().astype(np.intp)]
    return SampledPeriod(low, high, values, int(end - begin) / (high - low))


def _labels(
    annotated: Sequence[SampledPeriod],
    abnormal: npt.NDArray[np.bool_],
    others: Sequence[SampledPeriod],
    settings: Settings,
) -> list[bool | None]:
    """Abnormal or not for each of the others, None where it is uncertain."""
    if not others:
        return []
    from scipy.cluster.hierarchy import fcluster, linkage  # half a second to load, and most archives have no others
    from scipy.spatial.distance import squareform

    distance = distances([*annotated, *others])
    tree = linkage(squareform(distance, checks=False), "average")
    apart = _height(tree, abnormal)
    if apart < settings.least_difference:
        return [None] * len(others)
    cluster = fcluster(tree, settings.same_cluster * apart, "distance")
    own, rest = cluster[: len(annotated)], cluster[len(annotated) :]
    sick, well = set(own[abnormal].tolist()), set(own[~abnormal].tolist())
    far: dict[int, bool | None] = {}
    for number in set(rest.tolist()) - sick - well:
        members = cluster == number
        nearest = min(float(distance[np.ix_(members, cluster == other)].mean()) for other in sick)
        far[number] = False if nearest >= settings.far_cluster * apart else None
    clear = _clearly(distance, abnormal, settings)
    return [
        far.get(number, near if near is (number in sick) else None)
        for number, near in zip(rest.tolist(), clear, strict=True)
    ]


def _clearly(distance: Floats, abnormal: npt.NDArray[np.bool_], settings: Settings) -> list[bool | None]:
    """Whether each of the others is much nearer to the anomaly than to the reference; None: it is neither so nor the
    other way round, as where it lies across an edge."""
    count = len(abnormal)
    to_sick, to_well = (distance[count:, :count][:, some].mean(axis=1) for some in (abnormal, ~abnormal))
    sick, well = to_sick <= settings.same_cluster * to_well, to_well <= settings.same_cluster * to_sick
    return [None if one == other else bool(one) for one, other in zip(sick, well, strict=True)]


def _height(tree: Floats, abnormal: npt.NDArray[np.bool_]) -> float:
    """Where in the tree an annotated anomaly and an annotated reference, the first leaves, meet first."""
    from scipy.cluster.hierarchy import cophenet
    from scipy.spatial.distance import squareform

    count = len(abnormal)
    meet = squareform(cophenet(tree))[:count, :count][np.ix_(abnormal, ~abnormal)]
    return float(meet.min(initial=np.inf))


def distances(periods: Sequence[SampledPeriod]) -> Floats:
    """The distance of all pairs of periods: in values or in frequency, whichever is more."""
    frequency = np.array([period.frequency for period in periods])
    most = np.maximum(frequency[:, np.newaxis], frequency)
    found = np.divide(np.abs(frequency[:, np.newaxis] - frequency), most, out=np.zeros_like(most), where=most > 0)
    values = np.full((len(periods), SAMPLE), np.nan)
    for row, period in zip(values, periods, strict=True):
        row[: len(period.values)] = period.values
    one, other = np.triu_indices(len(periods), 1)
    found[one, other] = found[other, one] = np.maximum(found[one, other], entropy_distances(values[one], values[other]))
    return np.asarray(found)


def entropy_distances(one: Floats, other: Floats) -> Floats:
    """Row by row, how well values separate two periods: 1 for perfectly, 0 for as badly as can be; NaN: no value.

    The regularised segmentation entropy lies between that of the classes and that of the worst order of all points;
    the distance is where. (The reward itself, a quotient, is small already where a few values are mixed.)
    """
    first = np.arange(one.shape[1] + other.shape[1]) < one.shape[1]
    found = rewards(np.hstack([one, other]), first)
    share = found.abnormal / np.maximum(found.abnormal + found.reference, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        classes = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
        worst = worst_order_entropy(found.abnormal, found.reference)
        scaled = np.where(worst > classes + 1e-9, (worst - classes / found.reward) / (worst - classes), 0.0)
    both = (found.abnormal > 0) & (found.reference > 0)
    only_one = (found.abnormal > 0) != (found.reference > 0)
    return np.asarray(np.where(both, np.clip(np.round(scaled, 9), 0.0, 1.0), only_one), np.float64)
