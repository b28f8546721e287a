"""Streams whose times are not exact, as the benchmarks of imprecise time need them, and the queries over them.

The microbenchmark is that of H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", 3.7.1: an
event at every point of time, values from 1 to 1000 over and over, intervals [t - d, t + d], and components that take
the multiples of a number. `EXCLUSIVE` numbers have no common multiple up to 1000, so an event fits one component;
`OVERLAPPING` ones have many. Tools are as in 3.7.3, where the trace was simulated and is not given: here every tool
walks between eight locations, mostly to the next one, stays a minute on average, and is seen a few seconds late.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]

EXCLUSIVE = (31, 37, 41, 43, 47, 53)
OVERLAPPING = (30, 60, 45, 90, 36, 72)
VALUES = 1_000
POINTS_OF_TOOLS = 19
TOOLS, LOCATIONS = 90, 8
STAY = 60.0
"""Seconds at a location, on average."""
WITHIN_OF_TOOLS = 600
"""Ten minutes."""


class Uncertain(NamedTuple):
    """What baselines work on: events by key and earliest time, and for each component the events that fit it.

    `low`, `high`: the first and last point of every event, all of them equally likely. `member[begin[p]:begin[p + 1]]`:
    the events that fit component p, in order; `of_key[k, p]`: where those of key k begin there, `of_key[k + 1, p]`:
    where they end. `most`: the points of the longest interval.
    """

    low: Array
    high: Array
    member: Array
    of_key: Array
    most: int


def uncertain(low: Array, high: Array, fits: list[Array], key: Array) -> Uncertain:
    """Events sorted by key (numbers from zero) and earliest time; `fits`: per component, which events fit it."""
    members = [np.flatnonzero(one) for one in fits]
    begin = np.cumsum([0, *map(len, members)])
    starts = np.searchsorted(key, np.arange(int(key.max(initial=-1)) + 2))
    of_key = np.stack([begin[p] + np.searchsorted(some, starts) for p, some in enumerate(members)], axis=1)
    most = int((high - low).max(initial=0)) + 1
    return Uncertain(low, high, np.concatenate(members).astype(np.int64), of_key.astype(np.int64), most)


# ------------------------------------------------------------------------------------------- the microbenchmark


def values_in_turn(count: int, half: int) -> pa.Table:
    """An event at each point of time, `half` points before and after it are possible, too."""
    time = np.arange(count, dtype=np.int64)
    return pa.table(
        {
            "low": time - half,
            "high": time + half,
            "type": pa.array(["E"] * count).dictionary_encode(),
            "id": time,
            "value": time % VALUES + 1,
        }
    )


def multiples_query(numbers: tuple[int, ...], within: int, *, any_match: bool = True, confidence: float = 0.0) -> str:
    """The ids of the events of every match."""
    names = [f"e{number}" for number in range(1, len(numbers) + 1)]
    return f"""
    RETURN    {", ".join(f"{name}.id" for name in names)}
    PATTERN   SEQ({", ".join(f"E {name}" for name in names)})
    SEMANTICS {"skip-till-any-match" if any_match else "skip-till-next-match"}
    WHERE     {" AND ".join(f"{name}.value % {number} = 0" for name, number in zip(names, numbers, strict=True))}
    WITHIN    {within}
    {f"CONFIDENCE >= {confidence}" if confidence else ""}
    """


def multiples(events: pa.Table, numbers: tuple[int, ...]) -> Uncertain:
    """The same for baselines: one key."""
    value = events["value"].to_numpy()
    fits = [value % number == 0 for number in numbers]
    return uncertain(events["low"].to_numpy(), events["high"].to_numpy(), fits, np.zeros(len(value), np.int64))


# ------------------------------------------------------------------------------------------------------- tools

TOOLS_QUERY = f"""
RETURN    a.id, b.id, c.id
PATTERN   SEQ(ObjectAppear a, ObjectAppear b, ObjectAppear c)
SEMANTICS skip-till-next-match
WHERE     [item] AND a.location = 1 AND b.location = 2 AND c.location = 3
WITHIN    {WITHIN_OF_TOOLS}
"""


def tool_moves(count: int, tools: int = TOOLS, points: int = POINTS_OF_TOOLS, seed: int = 11) -> pa.Table:
    """Tools that appear at locations, in order of the earliest possible times; times are seconds.

    A tool is read once a second, seven times out of ten: it came up to `points` - 1 seconds before it was seen.
    """
    random = np.random.default_rng(seed)
    item = np.sort(np.arange(count) % tools)
    steps = np.where(random.random(count) < 0.5, 1, random.integers(1, LOCATIONS, count))
    seen = np.zeros(count, np.int64)
    location = np.zeros(count, np.int64)
    for tool in range(tools):
        mine = slice(*np.searchsorted(item, [tool, tool + 1]))
        stays = np.ceil(random.exponential(STAY, mine.stop - mine.start)).astype(np.int64)
        late = np.minimum(random.geometric(0.7, len(stays)) - 1, points - 1)
        seen[mine] = random.integers(0, 60) + np.cumsum(stays) + late
        location[mine] = np.cumsum(steps[mine]) % LOCATIONS + 1
    order = np.argsort(seen, kind="stable")
    seen, item, location = seen[order], item[order], location[order]
    kind = pa.array(["ObjectAppear"] * count).dictionary_encode()
    columns = {"low": seen - points + 1, "high": seen, "type": kind, "id": np.arange(count)}
    return pa.table({**columns, "item": item, "location": location})


def moves(events: pa.Table) -> tuple[Uncertain, Array]:
    """The same for baselines, and the id of each of their events: a key for every tool."""
    item, low, location = (events[name].to_numpy() for name in ("item", "low", "location"))
    order = np.lexsort((low, item))
    fits = [location[order] == place for place in (1, 2, 3)]
    return uncertain(low[order], events["high"].to_numpy()[order], fits, item[order]), events["id"].to_numpy()[order]
