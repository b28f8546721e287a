"""Options that take an interval: `--abnormal FROM TO`, `--reference [KEY=VALUE ...] FROM TO`.

An interval of another partition says which before its times, so these options take two words or more. The command's
parser knows fixed numbers of words only: the words of an interval are joined before it sees them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from trendloom.errors import OptionError

BETWEEN = "\x1f"
"""Stands between the words of one interval; nobody types it."""

INTERVALS = ("--abnormal", "--reference")
ATTRIBUTE = re.compile(r"[^=]+=.*", re.DOTALL)
FLAG = re.compile(r"--?[^\W\d]")

Interval = tuple[dict[str, object] | None, str, str]


class IntervalCommand(TyperCommand):
    """A command whose intervals take as many words as they need."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, joined_intervals(args))


def joined_intervals(words: Sequence[str]) -> list[str]:
    """The words, with those of each interval as one."""
    found: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name not in INTERVALS:
            found.append(word)
            continue
        if equals:
            waiting.insert(0, value)
        found += [name, BETWEEN.join(_taken(name, waiting))]
    return found


def _taken(name: str, waiting: list[str]) -> list[str]:
    """The words of an interval, which leave the queue."""
    taken = []
    while waiting and ATTRIBUTE.fullmatch(waiting[0]) and not FLAG.match(waiting[0]):
        taken.append(waiting.pop(0))
    times = [waiting.pop(0) for _ in range(2) if waiting and not FLAG.match(waiting[0])]
    if len(times) < 2:
        raise typer.BadParameter(f"{name} takes two times, FROM and TO: {name} '2024-01-31 12:00' '2024-01-31 12:30'")
    return [*taken, *times]


def interval_of(text: str, name: str) -> Interval:
    """The partition, if one is named, and the two times of an interval."""
    *partition, begin, end = text.split(BETWEEN)
    return (attributes_of(partition, name) if partition else None), begin, end


def attributes_of(words: Sequence[str] | None, name: str) -> dict[str, Any]:
    """Attributes written as KEY=VALUE."""
    found: dict[str, Any] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise OptionError(f"'{word}' does not say an attribute and its value", hint=f"{name} KEY=VALUE")
        found[key] = value
    return found
