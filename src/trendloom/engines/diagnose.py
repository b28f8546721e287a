"""From a question to a reason: check it, find related periods, make features of all of them, reason, keep a monitor.

    opened archive, request → annotation → related periods → feature tables (here or on Spark) → explanation → Diagnosis

All features of a diagnosis are made at once, over the windows of the marked intervals and of the periods that are like
them in related partitions. What the query measures in a partition is left out where that partition's series is what
was annotated, or stands for it: a series must not explain itself.
Cost: the events of those windows, once; then what `explanation` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from trendloom.archive import Archive
from trendloom.diagnosis.annotation import AnnotatedStretch, Annotation, annotate
from trendloom.diagnosis.archived_features import features_of_archive
from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.diagnosis.feature_space import Excluded, FeatureSpace, WindowedSpace, windows_within
from trendloom.diagnosis.features import FUNCTIONS, FeatureTable, check_functions
from trendloom.diagnosis.monitors import Monitor, check_monitor_name, graded, keep_monitor
from trendloom.diagnosis.partitions import monitored_series
from trendloom.diagnosis.periods import Period, RelatedPeriods, related_periods
from trendloom.diagnosis.reasoning import NO_RELATED
from trendloom.diagnosis.reasoning import diagnose as reason_of
from trendloom.diagnosis.request import DiagnosisRequest, Progress, Settings, ignore_progress
from trendloom.errors import DataError, OptionError, did_you_mean
from trendloom.logical.display import show_duration

OF_READING = 0.85
"""The share of progress for reading events and making features."""


@dataclass(frozen=True)
class DiagnosisWatch:
    """Callbacks: for progress, and a context around the start of Spark."""

    progress: Progress = ignore_progress
    starting: Callable[[], AbstractContextManager[None]] = nullcontext


UNWATCHED_DIAGNOSIS = DiagnosisWatch()


def diagnose_archive(
    archive: Archive,
    request: DiagnosisRequest,
    *,
    watch: DiagnosisWatch = UNWATCHED_DIAGNOSIS,
    save_as: str | None = None,
) -> Diagnosis:
    """The reason why the marked intervals are abnormal; kept as a monitor, if `save_as` names one."""
    settings = Settings()
    check_monitor_name(save_as)
    check_functions(request.functions or FUNCTIONS, request.features)
    annotation = annotate(archive, request)
    refuse_without_events(archive, annotation)
    watch.progress("related partitions", 0.0)
    periods = marked_periods(annotation)
    related = _related(archive, annotation, periods, settings)
    spaces = _spaces(annotation, request, periods, related)
    tables = _tables(archive, request, spaces, watch)
    found = reason_of(
        tables, periods, None if related is None else related.periods, settings, _second_part(watch.progress)
    )
    others = (note for note in found.notes if note != NO_RELATED)  # the notes of this module explain that
    found = replace(found, notes=(*annotation.notes, *_notes_of_related(annotation, related), *others))
    if save_as is None:
        return found
    watch.progress("precision and recall of the monitor", 0.99)
    monitor = save_diagnosis(archive, found, save_as, query=annotation.query.name)
    return replace(found, notes=(*found.notes, f"kept as monitor '{save_as}': {monitor.grade}"))


def save_diagnosis(archive: Archive, diagnosis: Diagnosis, name: str, *, query: str | None = None) -> Monitor:
    """Keep the reason of a diagnosis as a monitor, with its precision and recall on the labelled windows."""
    check_monitor_name(name)
    if not diagnosis.formula.clauses:
        raise OptionError("there is no reason to keep as a monitor", hint=diagnosis.sentence)
    grade = graded(archive, diagnosis.formula, diagnosis.periods)
    made_of = {"query": query, "periods": [period.to_json() for period in diagnosis.periods]}
    monitor = Monitor(name, diagnosis.formula, diagnosis.sentence, grade, made_of)
    keep_monitor(archive, monitor)
    return monitor


# -------------------------------------------------------------------------------------------------- checks


def refuse_without_events(archive: Archive, annotation: Annotation) -> None:
    """Refuse an archive that has results of the query but not the events that they came from."""
    known = archive.types()
    query = annotation.query
    if query.types and not set(query.types) & set(known):
        raise DataError(
            f"the archive {archive.root} has results of '{query.name}', but no events of {' or '.join(query.types)}",
            hint=did_you_mean(query.types[0], known) or "it has no events: archive them together with the results",
        )
    for one in (*annotation.abnormal, *annotation.reference):
        if not any(file.kind == "events" and file.overlaps(one.low, one.high) for file in archive.files):
            first, last = archive.span
            raise DataError(
                f"the archive has no events between {annotation.moment(one.low)} and {annotation.moment(one.high)}",
                hint=f"its events are from {annotation.moment(first)} to {annotation.moment(last)}, with gaps",
            )


# -------------------------------------------------------------------------------------------------- periods


def marked_periods(annotation: Annotation) -> tuple[Period, ...]:
    """The marked stretches as periods."""

    def period(one: AnnotatedStretch, *, abnormal: bool) -> Period:
        return Period(one.low, one.high, abnormal, one.partition.key)

    return (
        *(period(one, abnormal=True) for one in annotation.abnormal),
        *(period(one, abnormal=False) for one in annotation.reference),
    )


def _related(
    archive: Archive, annotation: Annotation, periods: Sequence[Period], settings: Settings
) -> RelatedPeriods | None:
    """Labelled periods of related partitions; None: there are none, so false positives cannot be found."""
    if not annotation.related:
        return None
    rows = {one.partition.key: one.partition for one in (*annotation.abnormal, *annotation.reference)}
    own = {one.partition: one for one in monitored_series(archive, annotation.query, tuple(rows.values()))}
    others = monitored_series(archive, annotation.query, annotation.related)
    return related_periods([(period, own[period.partition]) for period in periods], others, settings)


def _notes_of_related(annotation: Annotation, related: RelatedPeriods | None) -> tuple[str, ...]:
    by = ", ".join(annotation.related_by)
    if related is None:
        why = f"no other partition has the same {by}" if by else "partitions of this query have no dimension attributes"
        return (f"{why}, so false positives were not looked for",)
    count = len({period.partition for period in related.periods})
    used = (
        f"{len(annotation.related):,} related partitions (by {by}): {len(related.periods):,} periods of {count:,} used"
    )
    return (used + (f", {related.uncertain:,} uncertain ones left out" if related.uncertain else ""), *related.notes)


# ------------------------------------------------------------------------------------------------- features


def _spaces(
    annotation: Annotation, request: DiagnosisRequest, periods: Sequence[Period], related: RelatedPeriods | None
) -> tuple[WindowedSpace, ...]:
    """The windows and features of all periods, for every window size."""
    others = () if related is None else related.periods
    left_out = left_out_of(annotation, periods, others)
    found = []
    for window in annotation.windows:
        length = show_duration(window, annotation.axis)
        starts = windows_within([(one.low, one.high) for one in (*periods, *others)], window, length)
        functions = request.functions or FUNCTIONS
        keys = annotation.query.keys if annotation.runs else ()
        space = FeatureSpace(functions, dict(request.features), left_out, keys=keys, length=length)
        found.append(WindowedSpace(window, starts, space))
    return tuple(found)


def left_out_of(annotation: Annotation, periods: Sequence[Period], others: Sequence[Period]) -> tuple[Excluded, ...]:
    """What the query measures, of the partitions that were marked; and of related ones in their own periods."""
    marked = tuple(dict.fromkeys(one.partition for one in periods))
    found = []
    for type_, column in annotation.query.measured:
        found.append(Excluded(type_, column, marked if annotation.query.keys else ()))
        found += [Excluded(type_, column, (one.partition,), span) for one in others for span in _unmarked(one, periods)]
    return tuple(found)


def _unmarked(one: Period, marked: Sequence[Period]) -> list[tuple[int, int]]:
    """The stretches of a period without the marked times, in which the marked series alone is left out."""
    free = [(one.low, one.high)]
    for other in marked:
        free = [
            (low, high)
            for begin, end in free
            for low, high in ((begin, min(end, other.low)), (max(begin, other.high), end))
            if low < high
        ]
    return free


def _tables(
    archive: Archive, request: DiagnosisRequest, spaces: Sequence[WindowedSpace], watch: DiagnosisWatch
) -> tuple[FeatureTable, ...]:
    if request.engine == "local":
        return features_of_archive(archive, spaces, _first_part(watch.progress))
    from trendloom.engines.spark.features import features_on_spark
    from trendloom.engines.spark.session import session

    watch.progress("starting Spark", 0.0)
    with watch.starting():
        spark = session(request.master, name="trendloom diagnose")
    watch.progress("features, on Spark", 0.1 * OF_READING)
    return features_on_spark(spark, archive, spaces)


def _first_part(progress: Progress) -> Progress:
    return lambda what, share: progress(what, OF_READING * share)


def _second_part(progress: Progress) -> Progress:
    return lambda what, share: progress(what, OF_READING + (1 - OF_READING) * share)
