"""Make up histories of surgical tools, the same at every run, and find the unsafe uses among them with plain Python.

    python examples/tool_histories.py tools.parquet

A tool goes around: recycled, washed, sharpened, disinfected, checked, used. In a known share of the rounds a step is
left out, or the tool is checked before it was disinfected. Each event has time (s), type, id (of the tool) and, for
Operating, ins_type. The queries of nesting.tql ask about these; what they must find is computed here a second time,
tool by tool, without Trendloom.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]
History = list[tuple[int, str, str | None]]
"""The events of one tool in order of time: time, type, ins_type."""

TOOLS, ROUNDS, UNSAFE, SEED = 200, 6, 0.1, 14
HOUR = 3600
STEPS = np.array(["Recycle", "Washing", "Sharpening", "Disinfection", "Checking", "Operating"])
RECYCLE, WASHING, SHARPENING, DISINFECTION, CHECKING, OPERATING = range(len(STEPS))
MISTAKES = np.array(
    [
        [RECYCLE, WASHING, -1, DISINFECTION, CHECKING, OPERATING],
        [RECYCLE, WASHING, SHARPENING, -1, CHECKING, OPERATING],
        [RECYCLE, WASHING, SHARPENING, DISINFECTION, -1, OPERATING],
        [RECYCLE, WASHING, SHARPENING, CHECKING, DISINFECTION, OPERATING],
    ]
)
"""What can go wrong in a round: -1 is a step left out, the last is one too early."""


def tool_histories(tools: int = TOOLS, rounds: int = ROUNDS, unsafe: float = UNSAFE, seed: int = SEED) -> pa.Table:
    """The events of so many tools in order of time; `unsafe` is the share of rounds with a mistake."""
    random = np.random.default_rng(seed)
    steps = np.broadcast_to(np.arange(len(STEPS)), (tools, rounds, len(STEPS))).copy()
    wrong = random.random((tools, rounds)) < unsafe
    steps[wrong] = MISTAKES[random.integers(0, len(MISTAKES), int(wrong.sum()))]
    purpose = np.where(random.random((tools, rounds)) < 0.7, "surgery", "examination")
    happened = steps >= 0
    order = np.argsort(times := _times(random, steps.shape)[happened], kind="stable")
    columns = {
        "time": times,
        "type": STEPS[steps[happened]],
        "id": np.broadcast_to(np.arange(tools)[:, None, None], steps.shape)[happened],
        "ins_type": np.where(steps == OPERATING, purpose[:, :, None], None)[happened],
    }
    return pa.table({name: pa.array(column[order]) for name, column in columns.items()})


def _times(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Strictly increasing by tool: steps take minutes, and between two rounds a tool lies for up to three hours."""
    gaps = random.integers(60, 600, shape)
    gaps[:, :, RECYCLE] = random.integers(5 * 60, 3 * HOUR, shape[:2])
    gaps[:, 0, RECYCLE] = random.integers(0, 8 * HOUR, shape[0])
    return gaps.reshape(shape[0], -1).cumsum(axis=1).reshape(shape)


# ------------------------------------------------------------------------------------------------ found once more


def histories(events: pa.Table) -> dict[int, History]:
    """The events of each tool in order of time."""
    found: dict[int, History] = defaultdict(list)
    for row in events.sort_by("time").to_pylist():
        found[row["id"]].append((row["time"], row["type"], row["ins_type"]))
    return found


def uses(history: History, within: int = HOUR) -> Iterator[tuple[int, int, int]]:
    """Recycled, washed and used in surgery, within an hour: the places of the three events in the history."""
    for used, (end, step, purpose) in enumerate(history):
        if step == "Operating" and purpose == "surgery":
            for washed in (at for at in range(used) if history[at][1] == "Washing"):
                for recycled in (at for at in range(washed) if history[at][1] == "Recycle"):
                    if end - history[recycled][0] < within:
                        yield recycled, washed, used


def was_prepared(between: History) -> bool:
    """Whether a tool was sharpened, disinfected and checked, in this order: the first that fits is always the best."""
    wanted = ["Sharpening", "Disinfection", "Checking"]
    for _, step, _ in between:
        if wanted and step == wanted[0]:
            wanted.pop(0)
    return not wanted


def unsafe_uses(events: pa.Table) -> list[tuple[int, int, int, int]]:
    """What the unsafe-tool query must find: tool, and the times at which it was recycled, washed and used."""
    return sorted(
        (tool, history[recycled][0], history[washed][0], history[used][0])
        for tool, history in histories(events).items()
        for recycled, washed, used in uses(history)
        if not was_prepared(history[washed + 1 : used])
    )


def main(target: str) -> None:
    events = tool_histories()
    pq.write_table(events, Path(target))
    print(f"{len(events):,} events of {TOOLS:,} tools, {len(unsafe_uses(events)):,} unsafe uses: {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/tool_histories.py FILE.parquet")
    main(sys.argv[1])
