"""Reasons on real metrics: of the Numenta Anomaly Benchmark's labelled windows, which name the right series?

NAB's series are of different machines, and most have nothing to do with each other, so nobody knows a true reason. Two
questions have an answer, for labelled windows that at least one other series covers whole:

- *Which series is it?* The hours are marked, as an operator would who only knows when something was wrong; nothing is
  left out, and features are made per value of `series`. Right: the reason names the labelled series. As a control the
  same is asked of hours before the label, where nothing happened.
- *Who else?* The labelled series itself is left out, as for a diagnosis of its own chart. Right: the reason names
  another series that NAB labels at the same time; and without such, it names nothing.

NAB's windows are wide, ten hours or days, and hold an anomaly of minutes or hours: most of their time looks like any
other. They are centred on the anomaly, so the two hours in the middle are marked (`MIDDLE`), in windows of an hour,
because metrics come every five minutes. The reference is three days before and after the label, without other labels
of the series. With one or two abnormal windows chance is high, and every answer comes with a note that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.diagnosis.feature_space import Excluded, FeatureSpace, WindowedSpace, features_in_part, windows_within
from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.periods import Period
from trendloom.diagnosis.reasoning import diagnose
from trendloom.diagnosis.request import Settings

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
HOUR = 3_600_000_000
MIDDLE = HOUR
"""To either side of the middle of a label."""
AROUND = 72 * HOUR
"""How far the reference goes to either side of a label."""
CONTROL = 24 * HOUR
"""How long before a label nothing happened."""


@dataclass(frozen=True)
class Label:
    """A labelled window of a series, in ticks."""

    series: str
    low: int
    high: int

    def overlaps(self, low: int, high: int) -> bool:
        return self.low < high and low < self.high


@dataclass(frozen=True, eq=False)
class NabCase:
    """A label, the series that cover it, and those labelled at the same time."""

    label: Label
    covering: tuple[str, ...]
    labelled: tuple[str, ...]
    found: Diagnosis

    @property
    def named(self) -> set[str]:
        """The series of all features of the clusters that are kept."""
        kept = {one.cluster for one in self.found.kept}
        there = [one.feature for one in self.found.candidates if one.cluster is not None and one.cluster in kept]
        return {feature.category[1] for feature in there if feature.category is not None}


def nab_tables() -> tuple[pa.Table, list[Label]]:
    metrics = pq.read_table(DATA / "nab_metrics.parquet")
    windows = pq.read_table(DATA / "nab_windows.parquet")
    low, high = (windows[name].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    return metrics, [Label(*one) for one in zip(windows["series"].to_pylist(), low, high, strict=True)]


def diagnose_labels(*, left_out: bool, settings: Settings, earlier: int = 0) -> list[NabCase]:
    """The reason of each labelled window that other series cover; `earlier`: of hours so long before it instead."""
    metrics, labels = nab_tables()
    time = metrics["time"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    name = np.array(metrics["series"].to_pylist())
    spans = {one: (int(time[name == one].min()), int(time[name == one].max())) for one in sorted(set(name))}
    found = []
    for label in labels:
        covering = [
            one for one, (low, high) in spans.items() if one != label.series and low <= label.low and label.high <= high
        ]
        periods = marked(label, labels, spans[label.series], earlier)
        if not covering or periods is None:
            continue
        taken = metrics.filter(pc.is_in(metrics["series"], pa.array([label.series, *covering])))
        meanwhile = {one.series for one in labels if one.series in covering and one.overlaps(label.low, label.high)}
        diagnosis = _diagnosed(taken, label, periods, left_out=left_out, settings=settings)
        found.append(NabCase(label, tuple(covering), tuple(sorted(meanwhile)), diagnosis))
    return found


def marked(label: Label, labels: Sequence[Label], span: tuple[int, int], earlier: int) -> list[Period] | None:
    """The middle of the label, and the time around it that is not labelled, in hours that lie whole inside.

    `earlier`: the middle of a stretch so long before the label instead, which is not part of the reference then; None
    where there is no such stretch.
    """
    middle = (label.low + label.high) // 2 if not earlier else label.low - earlier
    sick = Label(label.series, middle - MIDDLE, middle + MIDDLE)
    mine = [one for one in labels if one.series == label.series]
    if earlier and (sick.low < span[0] or any(one.overlaps(sick.low, sick.high) for one in mine)):
        return None
    mine = [*mine, sick]
    found = [Period(sick.low, sick.high, True)]
    for low, high in ((max(span[0], label.low - AROUND), label.low), (label.high, min(span[1], label.high + AROUND))):
        ends = sorted((one.low, one.high) for one in mine if one.overlaps(low, high))
        for begin, end in zip([low, *(e for _, e in ends)], [*(b for b, _ in ends), high], strict=True):
            if end // HOUR > -(-begin // HOUR):
                found.append(Period(begin, end, False))
    return found if len(found) > 1 else None


def _diagnosed(
    events: pa.Table, label: Label, periods: Sequence[Period], *, left_out: bool, settings: Settings
) -> Diagnosis:
    partition = ((("series", label.series),),)
    hidden = [Excluded("Metric", "value", partition), Excluded("Metric", None, partition)] if left_out else []
    starts = windows_within([(one.low, one.high) for one in periods], HOUR, "1 h")
    space = FeatureSpace(left_out=hidden, length="1 h")
    table = features_in_part(
        {"Metric": events.drop_columns(["type"])}, "time", WindowedSpace(HOUR, starts, space)
    ).table
    return diagnose([table], periods, None, settings)


# ----------------------------------------------------------------------------------------------------- answers


def right_series(case: NabCase) -> bool:
    return case.label.series in case.named


def right_company(case: NabCase) -> bool:
    """Names one that is labelled at the same time; without such, nothing."""
    return bool(case.named & set(case.labelled)) if case.labelled else not case.named


@dataclass(frozen=True)
class NabCounts:
    """How many of how many labelled windows have a right answer to each question."""

    which: tuple[int, int]
    control: tuple[int, int]
    company: tuple[int, int]
    alone: tuple[int, int]


def count_nab(settings: Settings, *, show: bool = False) -> NabCounts:
    """`control`: hours in which nothing happened for which the reason names the series nevertheless."""
    which = diagnose_labels(left_out=False, settings=settings)
    others = diagnose_labels(left_out=True, settings=settings)
    control = diagnose_labels(left_out=False, settings=settings, earlier=CONTROL)
    company, alone = ([case for case in others if bool(case.labelled) is some] for some in (True, False))
    found = NabCounts(
        _right(which, right_series),
        _right(control, right_series),
        *(_right(c, right_company) for c in (company, alone)),
    )
    if show:
        _show("which series is it", which, right_series)
        _show("who else", others, right_company)
        Console().print(found)
    return found


def _right(cases: Sequence[NabCase], right: Callable[[NabCase], bool]) -> tuple[int, int]:
    return sum(map(right, cases)), len(cases)


def _show(title: str, cases: Sequence[NabCase], right: Callable[[NabCase], bool]) -> None:
    table = Table(title=f"{title}: {sum(map(right, cases))} of {len(cases)}")
    for column in ("label", "from", "others", "labelled too", "best reward", "reason", "right"):
        table.add_column(column)
    for case in cases:
        table.add_row(*_row(case, right(case)))
    Console(width=220).print(table)


def _row(case: NabCase, right: bool) -> tuple[Any, ...]:
    from_ = str(np.datetime64(case.label.low, "us"))[:13]
    too = ", ".join(one.split("/")[1] for one in case.labelled)
    reason = "; ".join(f"{_short(one.feature)} {one.feature.function}" for one in case.found.kept)
    best = f"{case.found.candidates[0].reward:.2f}"
    return case.label.series.split("/")[1], from_, str(len(case.covering)), too, best, reason, "yes" if right else "-"


def _short(feature: Feature) -> str:
    return feature.category[1].split("/")[1] if feature.category else "all series"


if __name__ == "__main__":
    count_nab(Settings(), show=True)
