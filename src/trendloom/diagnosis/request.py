"""The input of a diagnosis as the caller gives it: marked intervals, windows, thresholds; checked in shape only.

Intervals are pairs of times, or one pair; those of the reference may lie in another partition. `annotation` looks
them up in the archive later.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trendloom.errors import OptionError, did_you_mean, option
from trendloom.model.time import UTC, TimeAxis, zone_named

Moment = int | str | datetime.datetime
"""A time as callers give it."""

ENGINES = ("local", "spark")
WINDOW = "30 s"
"""Smooths what is measured every few seconds, and loses few details: the choice of the thesis."""

Progress = Callable[[str, float], None]
"""Callback invoked with the current step, in words, and the share of all work that is done."""


def ignore_progress(what: str, share: float) -> None:
    """The default callback."""


@dataclass(frozen=True)
class MarkedInterval:
    """A marked interval; `partition` None: that of the diagnosis."""

    begin: Moment
    end: Moment
    partition: Mapping[str, object] | None = None


@dataclass(frozen=True, eq=False)
class DiagnosisRequest:
    """All of the input. `reference` empty: the rest of the partition. `related_by` None: all dimensions."""

    query: str | None
    partition: Mapping[str, object]
    abnormal: tuple[MarkedInterval, ...]
    reference: tuple[MarkedInterval, ...] = ()
    related_by: tuple[str, ...] | None = None
    windows: tuple[int | str, ...] = (WINDOW,)
    functions: tuple[str, ...] | None = None
    features: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    engine: str = "local"
    time_zone: str | None = None
    master: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise OptionError(
                f"there is no engine '{self.engine}' for a diagnosis", hint=did_you_mean(self.engine, ENGINES)
            )
        if not self.abnormal:
            raise OptionError("nothing is marked as abnormal", hint=f"give {option('abnormal')} with two times")
        if not self.windows:
            raise OptionError("features need a window", hint=f"e.g. {option('windows', WINDOW)}")


@dataclass(frozen=True)
class Settings:
    """Thresholds that the literature leaves open.

    They are fixed on simulated anomalies, of other seeds than those of the evaluation (docs/decisions/0038 and 0039).

    - `least_reward`: features with less are never kept, however deep the leap after them is.
    - `least_leap`: where no drop between neighbours of the ranking is as deep, there is no leap.
    - `least_coverage`: the share of the windows of each class in which a feature must have a value.
    - `validated_share`: the share of its reward that a feature must keep over related partitions.
      `validated_best`: the share of the best reward there.
    - `correlation`: features whose correlation is as strong, of either sign, say the same.
    - `same_cluster`: how far a period of a related partition may be from the annotated anomaly, as clusters are
      merged, to be abnormal; `far_cluster`: how far it must be to be a reference; both as a share of how far the
      annotated reference is. In between it is left out. `least_difference`: annotated periods that differ less are
      alike, and nothing can be labelled. `edge`: the share of a labelled period that is left out at either end.
    - `most_ranges`: of abnormal values of a feature; `range_gain`: what another range must gain, as a share of both
      classes' windows.
    - `nearest_boundary`: how near to the reference a boundary may lie, as a share of the gap between the classes.
    - `most_related`: periods of related partitions that are compared with each other.
    - `chance`: so many features that separate by chance, expected of random ones, are worth a note.
    """

    least_reward: float = 0.3
    least_leap: float = 0.05
    least_coverage: float = 0.5
    validated_share: float = 0.4
    validated_best: float = 0.9
    correlation: float = 0.7
    same_cluster: float = 0.5
    far_cluster: float = 0.75
    least_difference: float = 0.15
    edge: float = 0.1
    most_ranges: int = 3
    range_gain: float = 0.1
    nearest_boundary: float = 0.1
    most_related: int = 400
    chance: float = 0.5


def marked_intervals(given: object, name: str, *, elsewhere: bool = False) -> tuple[MarkedInterval, ...]:
    """Intervals as callers give them: one pair of times, or several; with `elsewhere`, a partition may stand before."""
    if given is None:
        return ()
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _not_intervals(given, name)
    several = bool(given) and all(isinstance(one, Sequence) and not isinstance(one, str) for one in given)
    return tuple(_marked(one, name, elsewhere=elsewhere) for one in (given if several or not given else [given]))


def _marked(one: Any, name: str, *, elsewhere: bool) -> MarkedInterval:
    if len(one) == 2:
        return MarkedInterval(one[0], one[1])
    if len(one) == 3 and elsewhere and (one[0] is None or isinstance(one[0], Mapping)):
        return MarkedInterval(one[1], one[2], one[0])
    raise _not_intervals(one, name)


def _not_intervals(given: object, name: str) -> OptionError:
    return OptionError(
        f"{given!r} is not an interval", hint=f"{option(name)} takes (from, to), or a list of such pairs"
    )


def names_in(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Names that are given as one text with commas, or as several."""
    if given is None:
        return None
    parts = given.split(",") if isinstance(given, str) else list(given)
    return tuple(dict.fromkeys(name.strip() for name in parts if name.strip()))


def windows_in(given: int | str | Iterable[int | str]) -> tuple[int | str, ...]:
    """Window sizes: one, or several."""
    return (given,) if isinstance(given, int | str) else tuple(given)


# ------------------------------------------------------------------------------------------- times and ticks
#
# Text is a time of the zone that the caller names, or of the zone in the text; whole numbers are ticks already: the
# numbers of an integer column, microseconds since 1970 of timestamps.


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TICK = datetime.timedelta(microseconds=1)
WHOLE = re.compile(r"\s*[+-]?\d+\s*")


def tick_of(moment: Moment, axis: TimeAxis, zone: str | None, name: str) -> int:
    """The tick of a time; `name` is the option that it was given with."""
    if isinstance(moment, bool) or not isinstance(moment, int | str | datetime.datetime):
        raise OptionError(f"{moment!r} is not a time", hint=_example(axis, name))
    if isinstance(moment, int) or (isinstance(moment, str) and WHOLE.fullmatch(moment)):
        return int(moment)
    if not axis.timestamp:
        raise OptionError(
            f"'{moment}' is not a time of this archive: its times are whole numbers", hint=_example(axis, name)
        )
    if isinstance(moment, str):
        try:
            moment = datetime.datetime.fromisoformat(moment.strip())
        except ValueError:
            raise OptionError(f"'{moment}' is not a time", hint=_example(axis, name)) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_named(zone or UTC))
    return (moment - EPOCH) // TICK


def _example(axis: TimeAxis, name: str) -> str:
    return f"for example {option(name)} " + ("'2024-01-31 12:00:00'" if axis.timestamp else "1200")


def shown_tick(tick: int, axis: TimeAxis, zone: str | None = None) -> str:
    """A time as people read it, in their zone."""
    if not axis.timestamp:
        return str(tick)
    try:
        moment = (EPOCH + tick * TICK).astimezone(zone_named(zone or UTC))
    except OverflowError:
        return f"{tick} us"
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text if zone in (None, UTC) else f"{text} {zone}"
