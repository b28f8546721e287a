"""The actions of the page "Monitor": the chart of a query's results, marked stretches, and the reason why they differ.

They are plain functions of what the browser sends; `monitor_page` has the layout and the callbacks. Values from a
browser may be wrong or made up, so they are looked up again each time: a partition comes as the text of its attributes
and is searched among those of the archive. Cost: the rows of one partition, thinned to what a screen can show.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from dash import html

from trendloom.archive import Archive, ArchivedQuery
from trendloom.dashboard.app_state import AppState, opened_quietly
from trendloom.dashboard.figures import empty, reason_figure, series_figure
from trendloom.dashboard.jobs import PageJob
from trendloom.dashboard.marks import Marks, Stretch, selected_stretch, shown_tick, tick_at
from trendloom.dashboard.parts import aria, graph, message, notes, table
from trendloom.dashboard.requests import Reason, find_reason, keep_reason
from trendloom.diagnosis.diagnosis import CandidateFeature, Diagnosis
from trendloom.diagnosis.request import DiagnosisRequest, MarkedInterval
from trendloom.errors import DataError, OptionError
from trendloom.model.time import TimeAxis
from trendloom.viz.reasons import charts_of
from trendloom.viz.timeline import Curve, curve_of, times_of

AT, ROWS = "at", "rows"
MOST_PARTITIONS = 2_000
"""Partitions in a dropdown: more would make the page slow."""
WINDOWS = {"30 s": 30, "1 min": 60, "5 min": 300, "15 min": 900, "1 h": 3_600, "6 h": 21_600, "1 d": 86_400}
"""Windows of features that are proposed, with their seconds, the finest first."""
DEFAULT_WINDOW = "30 s"
MONITOR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
BEST_REJECTED = 25
SECONDS = 120.0
"""A diagnosis may take longer than a query: it reads every type."""


@dataclass(frozen=True)
class PartitionChoice:
    """A partition to choose: `text` names it for the browser, `label` for people."""

    text: str
    label: str
    key: tuple[tuple[str, Any], ...]


def partition_choices(archive: Archive, query: ArchivedQuery) -> list[PartitionChoice]:
    """The partitions of a query, in the order of their attributes."""
    rows = archive.partitions(query.name).to_pylist()
    return [_choice(row, query) for row in rows[:MOST_PARTITIONS]]


def _choice(row: dict[str, Any], query: ArchivedQuery) -> PartitionChoice:
    key = tuple((name, row[name]) for name in query.keys)
    named = ", ".join(f"{name} = {value}" for name, value in key) or "the whole stream"
    return PartitionChoice(json.dumps([str(value) for _, value in key]), f"{named}  ({row['points']:,} points)", key)


def find_partition(choices: Sequence[PartitionChoice], text: object) -> PartitionChoice:
    """The partition of this text."""
    for one in choices:
        if one.text == text:
            return one
    raise DataError("this partition is not in the archive any more", hint="choose another")


def query_named(archive: Archive, name: object) -> ArchivedQuery:
    """A query of the archive."""
    known = archive.queries()
    if not isinstance(name, str) or name not in known:
        listed = ", ".join(known) or "none"
        raise DataError(f"the archive has no query '{name}'", hint=f"there is {listed}")
    return known[name]


def value_names(query: ArchivedQuery) -> tuple[str, ...]:
    """The values that can be drawn over time: numbers of the rows, or else the number of rows."""
    return tuple(query.values) or (ROWS,)


def series_of(archive: Archive, query: ArchivedQuery, partition: PartitionChoice, value: object) -> Curve:
    """One value of one partition over time."""
    rows = archive.results(query.name, dict(partition.key))
    name = value if isinstance(value, str) and value in value_names(query) else value_names(query)[0]
    times = times_of(rows, AT)
    if name == ROWS and ROWS not in query.values:
        moments, counts = np.unique(times, return_counts=True)
        return curve_of("rows at a time", moments, pa.chunked_array([pa.array(counts)]))
    return curve_of(name, times, rows.column(name))


def proposed_window(curve: Curve, *, dated: bool) -> str:
    """A window for features that holds a few values of the series; the finest that does."""
    if not dated or len(curve.times) < 2:
        return DEFAULT_WINDOW
    gap = float(np.median(np.diff(curve.times.astype("datetime64[us]").astype(np.int64))))
    return next((text for text, seconds in WINDOWS.items() if seconds * 1e6 >= gap), "1 d")


@dataclass(frozen=True)
class Chosen:
    """The choices of the visitor, as the browser sends them."""

    archive: object
    query: object
    partition: object
    value: object = None

    @property
    def chart(self) -> str:
        """The chart that marks belong to, whichever value is drawn."""
        return "\n".join(map(str, (self.archive, self.query, self.partition)))


@dataclass(frozen=True)
class ChosenSeries:
    """The same, looked up."""

    archive: Archive
    damaged: tuple[str, ...]
    query: ArchivedQuery
    partition: PartitionChoice

    @property
    def axis(self) -> TimeAxis:
        return self.archive.axis


@dataclass(frozen=True)
class Monitoring:
    """The actions of the page."""

    app_state: AppState

    # ----------------------------------------------------------------------------------------- choosing

    def queries(self, archive: object) -> list[str]:
        """The queries whose results are archived."""
        return list(self.app_state.archives.open(archive).queries())

    def partitions(self, archive: object, query: object) -> list[PartitionChoice]:
        opened = self.app_state.archives.open(archive)
        return partition_choices(opened, query_named(opened, query))

    def values(self, archive: object, query: object) -> tuple[str, ...]:
        return value_names(query_named(self.app_state.archives.open(archive), query))

    def look_up(self, chosen: Chosen) -> ChosenSeries:
        """The choices, looked up in the archive."""
        archive = self.app_state.archives.open(chosen.archive)
        damaged = tuple(archive.damaged)
        query = query_named(archive, chosen.query)
        partition = find_partition(partition_choices(archive, query), chosen.partition)
        return ChosenSeries(archive, damaged, query, partition)

    def version(self, archive: object) -> str:
        """Changes when the archive does."""
        files = self.app_state.archives.open(archive).files
        return f"{len(files)}:{hash(files)}"

    # ------------------------------------------------------------------------------------------- the chart

    def chart(self, chosen: Chosen, kept: Any) -> tuple[Any, str, list[html.Div]]:
        """The figure, a window that suits it, and notes."""
        found = self.look_up(chosen)
        curve = series_of(found.archive, found.query, found.partition, chosen.value)
        dated = found.axis.timestamp
        said = notes(f"{path} is damaged and left out" for path in found.damaged)
        if not len(curve.times):
            return empty("this partition has no results yet"), proposed_window(curve, dated=dated), said
        marks = Marks.from_json(kept, chosen.chart)
        return (
            series_figure(curve, marks.spans(dated=dated), _digest(chosen.chart, curve.name)),
            proposed_window(curve, dated=dated),
            said,
        )

    # ------------------------------------------------------------------------------------------- marking

    def mark_selected(self, chosen: Chosen, kept: Any, kind: str, selected: Any) -> Marks | None:
        """The marks with the selected stretch; None where nothing was selected."""
        axis = self.look_up(chosen).axis
        stretch = selected_stretch(selected, axis)
        return None if stretch is None else Marks.from_json(kept, chosen.chart).with_mark(kind, *stretch)

    def mark_typed(self, chosen: Chosen, kept: Any, kind: str, low: object, high: object) -> Marks:
        """The marks with the typed interval."""
        axis = self.look_up(chosen).axis
        if not str(low or "").strip() or not str(high or "").strip():
            raise OptionError("an interval needs two times", hint="fill in both From and To")
        return Marks.from_json(kept, chosen.chart).with_mark(kind, tick_at(low, axis), tick_at(high, axis))

    def listed(self, chosen: Chosen, kept: Any) -> list[html.Li]:
        """The marks, each with a button that removes it."""
        axis = self.look_up(chosen).axis
        return [
            _listed(number, kind, one, axis)
            for number, (kind, one) in enumerate(Marks.from_json(kept, chosen.chart).listed())
        ]

    # ---------------------------------------------------------------------------------------- the reason

    def ask(self, chosen: Chosen, kept: Any, window: object) -> str:
        """Start the diagnosis; returns the name of the job."""
        found = self.look_up(chosen)
        marks = Marks.from_json(kept, chosen.chart)
        if not marks.abnormal:
            raise OptionError("nothing is marked as abnormal", hint="drag over the chart, or type From and To")
        abnormal, reference = (
            tuple(MarkedInterval(low, high) for low, high in some) for some in (marks.abnormal, marks.reference)
        )
        partition = dict(found.partition.key)
        request = DiagnosisRequest(found.query.name, partition, abnormal, reference, windows=windows_in(window))
        return self.app_state.jobs.send(find_reason, found.archive.root, request, seconds=SECONDS)

    def reason(self, name: str | None) -> tuple[PageJob, Any]:
        """The state of the job, and what to show of it."""
        job = self.app_state.jobs.look(name)
        if job.state == "running":
            return job, message("busy", job.said)
        if job.state != "done":
            return job, message("error", job.said, job.hint)
        dated = opened_quietly(job.answer.root).axis.timestamp
        return job, shown_reason(job.answer.diagnosis, dated=dated)

    def save(self, reason: str | None, name: object) -> str:
        """Keep a reason that was found as a monitor; returns the name of the job."""
        wanted = monitor_name(name)
        found = self.app_state.jobs.look(reason).answer
        if not isinstance(found, Reason):
            raise OptionError("there is no reason to keep yet", hint="ask why first")
        if wanted in opened_quietly(found.root).monitors():
            raise OptionError(f"there is a monitor '{wanted}' already", hint="choose another name")
        return self.app_state.jobs.send(keep_reason, found, wanted, seconds=SECONDS)

    def saved(self, name: str | None) -> tuple[Any, bool]:
        """A message about a monitor that is being saved, and whether that is over."""
        found = self.app_state.jobs.look(name)
        if found.state == "running":
            return message("busy", found.said), False
        if found.state != "done":
            return message("error", found.said, found.hint), True
        return message("good", f"the monitor is saved: {found.answer}"), True


def _digest(*texts: str) -> str:
    """A name for the chart that holds nothing of the data."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _listed(number: int, kind: str, one: Stretch, axis: TimeAxis) -> html.Li:
    text = f"{kind}: {shown_tick(one[0], axis)} to {shown_tick(one[1], axis)}"
    remove = html.Button(
        "×", id={"type": "unmark", "place": number}, className="remove", **aria(label=f"Remove {text}")
    )
    return html.Li([html.Span(text), remove], className=f"mark {kind}")


def monitor_name(given: object) -> str:
    """A name that can be a file's wherever the archive goes."""
    name = str(given or "").strip()
    if not MONITOR_NAME.fullmatch(name):
        raise OptionError(
            f"'{name}' cannot be the name of a monitor" if name else "a monitor needs a name",
            hint="use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    return name


def windows_in(given: object) -> tuple[str, ...]:
    """Window sizes as typed, with commas between them."""
    found = tuple(part.strip() for part in str(given or "").split(",") if part.strip())
    if not found or len(found) > 6:
        raise OptionError("features need a window", hint="for example 30 s, or 30 s, 5 min; six at most")
    return found


# ---------------------------------------------------------------------------------------------- reasons shown


def shown_reason(diagnosis: Diagnosis, *, dated: bool) -> list[Any]:
    """The sentence, a chart for each kept feature, and the table of all that was looked at."""
    kept = html.Div(
        [_feature(number, chart) for number, chart in enumerate(charts_of(diagnosis, dated=dated))], className="reasons"
    )
    rejected = [one for one in diagnosis.candidates if not one.kept]
    shown = [*diagnosis.kept, *rejected[:BEST_REJECTED]]
    more = len(diagnosis.candidates) - len(shown)
    caption = f"{len(diagnosis.kept)} kept of {len(diagnosis.candidates):,} features"
    caption += f"; the best {len(shown)} are listed" if more else ""
    columns = ["Feature", "Reward", "Over related", "Abnormal values", "Kept, or why not"]
    rows = table(columns, [_row(diagnosis, one) for one in shown], caption=caption)
    return [
        html.P(diagnosis.sentence, className="sentence", id="sentence"),
        *notes(diagnosis.notes),
        kept,
        html.Details([html.Summary("All that was looked at, and why the rest was not kept"), rows], id="candidates"),
    ]


def _row(diagnosis: Diagnosis, one: CandidateFeature) -> Sequence[Any]:
    why = "kept" if one.kept else one.why
    return one.feature.name, round(one.reward, 3), _rounded(one.validated), diagnosis.boundary(one.feature) or "–", why


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _feature(number: int, chart: Any) -> html.Figure:
    caption = [
        html.Strong(chart.name),
        html.Span(f" {chart.boundary}"),
        html.Span(f"reward {chart.reward:.2f}", className="hint"),
    ]
    described = f"{chart.name} over time; abnormal where {chart.boundary or 'unbounded'}"
    return html.Figure(
        [html.Figcaption(caption), graph(f"reason-{number}", reason_figure(chart), described=described)],
        className="reason",
    )
