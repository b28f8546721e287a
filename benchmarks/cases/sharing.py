"""Streams and workloads whose queries have parts in common: seeded, with the overlap as a parameter.

Three streams resemble those that SHARON was measured on in what queries see of them: street segments that taxis cross
(vehicles are keys, segments are types), cars on an expressway that fills as the run goes on (Linear Road), and items
bought by users (50 items, 20 users). Times are whole seconds, so that many events have equal times.

A workload has queries of one length. Of each query's positions a stated share is common to a *family* of queries, and
stands at the beginning, at the end or in the middle; the other positions are drawn for the query alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]
Word = tuple[str, ...]

OVERLAPS = {"low": 0.2, "middle": 0.5, "high": 0.9}
"""By name, the share of a query's positions that are common to its family."""
PLACES = ("beginning", "end", "middle")
"""Where the common positions stand."""
STREETS, SEGMENTS, ITEMS, USERS = 150, 200, 50, 20
TRIES = 200
"""How often a word is drawn again that another query has; where types are few, queries have equal words in the end."""


@dataclass(frozen=True)
class StreamOfTypes:
    """Events in order of time. `window`: seconds in which there are `per_window` events, on average."""

    name: str
    table: pa.Table
    types: Word
    key: str
    value: str
    window: int
    per_window: int
    one_way: bool = False  # whether a key passes the types in their order, round and round

    def __len__(self) -> int:
        return len(self.table)

    def rates(self) -> dict[str, float]:
        """Events of each type per second."""
        seconds = int(self.table["time"][-1].as_py()) + 1
        counts = self.table["type"].value_counts().to_pylist()
        return dict.fromkeys(self.types, 0.0) | {one["values"]: one["counts"] / seconds for one in counts}


# --------------------------------------------------------------------------------------------------- streams


def taxi(per_window: int, windows: float = 2.0, seed: int = 31) -> StreamOfTypes:
    """Vehicles that cross street segments, some of which are busier, with the fare so far; ten minutes per window.

    There is a vehicle for every 1,000 events of a window, 200 of them at most.
    """
    random = np.random.default_rng(seed)
    vehicles = min(200, per_window // 1_000 + 1)
    window, count = 600, int(per_window * windows)
    busy = random.permutation(1.0 / np.arange(100, 100 + STREETS))
    columns = {
        "vehicle": random.integers(0, vehicles, count),
        "fare": random.integers(250, 9_000, count) / 100.0,
    }
    types = tuple(f"Segment{number}" for number in range(STREETS))
    codes = random.choice(STREETS, count, p=busy / busy.sum())
    return _stream("taxi", _steady(random, count, window * windows), codes, types, columns, window, per_window)


def linear_road(per_window: int, windows: float = 2.0, seed: int = 37) -> StreamOfTypes:
    """Cars that report position and speed on a road of 200 segments; three times as many per second in the end.

    A car drives on from where it was, and from the end of the road to its beginning. There is one for every 500 events
    of a window, 400 of them at most.
    """
    random = np.random.default_rng(seed)
    cars = min(400, per_window // 500 + 1)
    window, count = 600, int(per_window * windows)
    seconds = window * windows
    share = np.sort(random.random(count))  # the rate grows linearly from 1 to 3: (s + s²) / 2 of the events until s
    time = (seconds * (np.sqrt(1 + 8 * share) - 1) / 2).astype(np.int64)
    car = random.integers(0, cars, count)
    speed = random.integers(20, 100, count)
    feet = random.integers(0, SEGMENTS * 5_280, cars)[car] + _sums_by(car, speed * random.integers(10, 90, count))
    position = feet % (SEGMENTS * 5_280)
    columns = {"car": car, "speed": speed, "position": position}
    types = tuple(f"Segment{number}" for number in range(SEGMENTS))
    found = _stream("linear road", time, position // 5_280, types, columns, window, per_window)
    return replace(found, one_way=True)


def e_commerce(per_window: int, windows: float = 2.0, seed: int = 41, *, rate: int = 3_000) -> StreamOfTypes:
    """50 items that 20 users buy, `rate` events a second: every user buys most items in every second."""
    random = np.random.default_rng(seed)
    window, count = max(10, round(per_window / rate / 10) * 10), int(per_window * windows)
    columns = {"user": random.integers(0, USERS, count), "price": random.integers(100, 20_000, count) / 100.0}
    types = tuple(f"Item{number}" for number in range(ITEMS))
    codes = random.integers(0, ITEMS, count)
    return _stream("e-commerce", _steady(random, count, window * windows), codes, types, columns, window, per_window)


STREAMS: dict[str, Callable[..., StreamOfTypes]] = {"taxi": taxi, "linear road": linear_road, "e-commerce": e_commerce}


def _stream(
    name: str, time: Array, codes: Array, types: Word, columns: dict[str, Array], window: int, per_window: int
) -> StreamOfTypes:
    """The first of the columns is the key, the second has the values."""
    texts = pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(types)).cast(pa.string())
    key, value = list(columns)[:2]
    return StreamOfTypes(
        name, pa.table({"time": time, "type": texts, **columns}), types, key, value, window, per_window
    )


def _steady(random: Any, count: int, seconds: float) -> Array:
    found: Array = np.sort(random.integers(0, max(1, int(seconds)), count))
    return found


def _sums_by(key: Array, steps: Array) -> Array:
    """Running sums of the steps of each key, in the order they are given."""
    order = np.argsort(key, kind="stable")
    sums = np.cumsum(steps[order])
    first = np.r_[True, key[order][1:] != key[order][:-1]][: len(key)]
    found = np.empty_like(sums)
    found[order] = sums - (sums - steps[order])[first][np.cumsum(first) - 1]
    return found


# ------------------------------------------------------------------------------------------------- workloads


@dataclass(frozen=True)
class SharingWorkload:
    """Queries that differ in their words alone. `overlap`: the share of positions that are common to a family."""

    words: tuple[Word, ...]
    overlap: float
    place: str
    families: int
    within: int
    slide: int
    key: str
    aggregates: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"q{number}" for number in range(len(self.words)))

    def queries(self) -> dict[str, str]:
        """By name the text of each query."""
        return {name: self._query(word) for name, word in zip(self.names, self.words, strict=True)}

    def text(self) -> str:
        """All queries in one text."""
        return "\n".join(f"QUERY {name}: {query}" for name, query in self.queries().items())

    def describe(self) -> str:
        """Queries × length, the share that is common and where; in how many families; windows open at a time."""
        repeated = len(self.words) - len(set(self.words))
        parts = [
            f"{len(self.words)} × {len(self.words[0])}",
            f"{self.overlap:.0%} {self.place}" + (f" in {self.families}" if self.families > 1 else ""),
            f"{self.within // self.slide} open",
        ]
        return ", ".join(parts + ([f"{repeated} words again"] if repeated else []))

    def _query(self, word: Word) -> str:
        return (
            f"RETURN {self.key}, {self.aggregates.format(last=word[-1])} PATTERN SEQ({', '.join(word)}) "
            f"WHERE [{self.key}] GROUP BY {self.key} WITHIN {self.within} s SLIDE {self.slide} s"
        )


def sharing_workload(
    stream: StreamOfTypes,
    queries: int = 20,
    length: int = 10,
    *,
    overlap: float = OVERLAPS["high"],
    place: str = "beginning",
    families: int = 1,
    windows_open: int = 10,
    values: str = "",
    seed: int = 43,
) -> SharingWorkload:
    """Queries over the types of a stream; `values`: of SUM, AVG, MIN and MAX those to ask for beside COUNT(*)."""
    if place not in PLACES:
        raise ValueError(f"there is no place '{place}' for what is common: it is one of {', '.join(PLACES)}")
    random = np.random.default_rng(seed)
    words = overlapping_words(random, stream, queries, length, overlap=overlap, place=place, families=families)
    asked = [f"{name}({{last}}.{stream.value})" for name in values.split()]
    within = -(-stream.window // windows_open) * windows_open
    stated = common_positions(length, overlap, place) / length
    listed = ", ".join(["COUNT(*)", *asked])
    return SharingWorkload(words, stated, place, families, within, within // windows_open, stream.key, listed)


def common_positions(length: int, overlap: float, place: str) -> int:
    """How many positions are common: a query has at least one of its own, on either side of a part in the middle."""
    return min(round(length * overlap), length - (2 if place == "middle" else 1))


def overlapping_words(
    random: Any, stream: StreamOfTypes, queries: int, length: int, *, overlap: float, place: str, families: int
) -> tuple[Word, ...]:
    """Words without a letter twice; queries take turns in belonging to the families."""
    common = common_positions(length, overlap, place)
    own = length - common
    before = {"beginning": 0, "end": own, "middle": own // 2}[place]
    some = [_rooms(random, stream, common, before / own) for _ in range(families)]
    cores = [_drawn(random, stream, core, common) for _, core, _ in some]
    found: list[Word] = []
    for number in range(queries):
        first, _, last = some[number % families]
        for _ in range(TRIES):
            head = _drawn(random, stream, first, before)
            tail = _drawn(random, stream, [one for one in last if one not in head], own - before)
            word = head + cores[number % families] + tail
            if word not in found:
                break
        found.append(word)
    return tuple(found)


def _rooms(random: Any, stream: StreamOfTypes, common: int, share: float) -> tuple[Word, Word, Word]:
    """The types that may stand before, in and after a common part.

    On a one-way road these are stretches in this order, a third of them for the common part; `share`: how much of the
    rest lies before it.
    """
    types = stream.types if stream.one_way else tuple(random.permutation(stream.types).tolist())
    size = max(len(types) // 3, common) if stream.one_way else common
    low = round((len(types) - size) * share)
    before, core, after = types[:low], types[low : low + size], types[low + size :]
    return (before, core, after) if stream.one_way else (before + after, core, before + after)


def _drawn(random: Any, stream: StreamOfTypes, types: Sequence[str], count: int) -> Word:
    places = random.choice(len(types), count, replace=False) if count else np.empty(0, np.int64)
    return tuple(types[place] for place in (np.sort(places) if stream.one_way else places))


def routes(queries: int, length: int, *, streets: int = 60, seed: int = 47) -> tuple[Word, ...]:
    """Pieces of long routes through a town: each overlaps with many others, by more or less, at either end.

    A route takes every street once; there is one for every 20 queries, and at least two.
    """
    random = np.random.default_rng(seed)
    names = np.array([f"Street{number}" for number in range(streets)])
    towns = [random.permutation(names) for _ in range(max(2, queries // 20))]
    found = []
    for number in range(queries):
        first = int(random.integers(0, streets - length + 1))
        found.append(tuple(towns[number % len(towns)][first : first + length].tolist()))
    return tuple(found)
