"""Features, rewards and correlations as their definitions read, in plain Python: slow, and easy to believe.

Shares no code with `trendloom.diagnosis`: dictionaries of lists, `statistics` and `math`, the worst order of a mixed
segment written out letter by letter.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

Key = tuple[str, str | None, str, tuple[str, str] | None]
"""Type, attribute, function, category."""


def plain_features(
    events: Mapping[str, Sequence[Mapping[str, Any]]],
    time: str,
    starts: Sequence[int],
    window: int,
    categories: Sequence[str] = (),
) -> dict[Key, list[float | None]]:
    """Every feature over windows (starts are multiples of their length), of events by type.

    All columns but time and categories are numbers; features without any value are left out.
    """
    found: dict[Key, list[float | None]] = {}
    wanted = set(starts)
    for type_, rows in events.items():
        inside = [row for row in rows if row[time] // window * window in wanted]
        names = [name for name in inside[0] if name not in (time, *categories)] if inside else []
        for category, some in groups_of(inside, categories):
            windows: dict[int, list[Mapping[str, Any]]] = {start: [] for start in starts}
            for row in some:
                windows[row[time] // window * window].append(row)
            found[type_, None, "count", category] = [float(len(part)) for part in windows.values()]
            for name in names:
                values = [
                    [(row[time], row[name]) for row in part if row[name] is not None] for part in windows.values()
                ]
                if any(row[name] is None for row in inside) and any(row[name] is not None for row in inside):
                    found[type_, name, "count", category] = [float(len(points)) for points in values]
                for function in ("mean", "min", "max", "deviation", "change"):
                    numbers = [plain_number(function, points) for points in values]
                    if any(number is not None for number in numbers):
                        found[type_, name, function, category] = numbers
    return found


def groups_of(
    rows: Sequence[Mapping[str, Any]], categories: Sequence[str]
) -> Iterable[tuple[tuple[str, str] | None, list[Mapping[str, Any]]]]:
    """All rows, and those of each value of each column with 2 to 20 values (or one that some lack)."""
    yield None, list(rows)
    for column in categories:
        values = {row[column] for row in rows}
        names = sorted(values - {None})
        if len(values) > 1 and 0 < len(names) <= 20:
            for value in names:
                yield (column, value), [row for row in rows if row[column] == value]


def plain_number(function: str, points: Sequence[tuple[int, float]]) -> float | None:
    """What a function makes of times and values of a window."""
    if not points:
        return None
    values = [float(value) for _, value in points]
    if function == "change":
        ordered = sorted(points)
        return float(ordered[-1][1]) - float(ordered[0][1])
    functions = {"mean": statistics.fmean, "min": min, "max": max, "deviation": statistics.pstdev}
    return float(functions[function](values))


# -------------------------------------------------------------------------------------------------- rewards


def plain_reward(abnormal: Sequence[float], reference: Sequence[float]) -> float:
    """Class entropy over regularised segmentation entropy, of the values of two classes."""
    if not abnormal or not reference:
        return 0.0
    segments = plain_segments(abnormal, reference)
    total = entropy([len(letters) for letters in segments])
    for letters in segments:
        if len(set(letters)) == 2:
            runs = [len(list(run)) for _, run in groupby(worst_order(letters.count("A"), letters.count("N")))]
            total += entropy(runs)
    return entropy([len(abnormal), len(reference)]) / total


def plain_segments(abnormal: Sequence[float], reference: Sequence[float]) -> list[str]:
    """The letters of each segment, A and N, by value."""
    letters: dict[float, str] = defaultdict(str)
    for value in abnormal:
        letters[value] += "A"
    for value in reference:
        letters[value] += "N"
    ordered = [letters[value] for value in sorted(letters)]
    return ["".join(run) for _, run in groupby(ordered, key=lambda found: "".join(sorted(set(found))))]


def worst_order(abnormal: int, reference: int) -> str:
    """The majority cut by the points of the minority, as evenly as it goes."""
    few, many, majority, minority = min(abnormal, reference), max(abnormal, reference), "A", "N"
    if abnormal < reference:
        majority, minority = "N", "A"
    pieces = min(few + 1, many)
    sizes = [many // pieces + (number < many % pieces) for number in range(pieces)]
    text = ""
    for number, size in enumerate(sizes):
        text += majority * size + (minority if number < few else "")
    return text


def entropy(counts: Sequence[int]) -> float:
    """In bits, of shares given as counts."""
    return sum(count / sum(counts) * math.log2(sum(counts) / count) for count in counts if count)


def plain_correlation(one: Sequence[float | None], other: Sequence[float | None]) -> float:
    """Pearson's, over the places where both have values; 0 where one does not vary."""
    pairs = [(x, y) for x, y in zip(one, other, strict=True) if x is not None and y is not None]
    if len({x for x, _ in pairs}) < 2 or len({y for _, y in pairs}) < 2:
        return 0.0
    return statistics.correlation([x for x, _ in pairs], [y for _, y in pairs])
