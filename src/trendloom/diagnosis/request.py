"""What is asked of a diagnosis, as the caller said it: frozen, and put in one shape, whatever door it came through.

Intervals are pairs of times, or one pair; those of the reference may lie in another partition. What the archive has to
say about it (`annotation`) comes later: here only the shape is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trendloom.diagnosis.instants import Moment
from trendloom.errors import OptionError, did_you_mean, option

ENGINES = ("local", "spark")
WINDOW = "30 s"
"""Smooths what is measured every few seconds, and loses few details: the choice of the thesis."""

Progress = Callable[[str, float], None]
"""Callback invoked with what is being done now, in words, and the share of all work that is done."""


def ignore_progress(what: str, share: float) -> None:
    """The default callback."""


@dataclass(frozen=True)
class MarkedInterval:
    """An interval that somebody marked; `partition` None: that of the diagnosis."""

    begin: Moment
    end: Moment
    partition: Mapping[str, object] | None = None


@dataclass(frozen=True, eq=False)
class DiagnosisRequest:
    """The whole question. `reference` empty: the rest of the partition. `related_by` None: all dimensions."""

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
