"""A kernel that the engines have never heard of: it counts events per key and window, with summaries per pane.

It keeps the contract and nothing else, so it shows that the contract is all that streaming needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import KEY, PANE, OnProgress
from trendloom.kernels.contract.aggregates import Amounts, Totals
from trendloom.kernels.contract.emission import Certain, EmissionPolicy
from trendloom.kernels.contract.matches import Matches, ResultColumn
from trendloom.kernels.match.search import SearchKernel
from trendloom.model.schema import Kind
from trendloom.model.time import Window

Array = np.ndarray[Any, Any]
SUMMARY = pa.schema([(KEY, pa.int64()), (PANE, pa.int64()), ("sum", pa.int64())])


@dataclass(frozen=True)
class Toy:
    """`window` slides; the result is called `measure`."""

    window: Window
    measure: str

    version = 7
    family = "Toy"
    adds_up = True
    aggregation = None
    light = True
    summarising = None
    reads: frozenset[str] = frozenset()
    columns: tuple[ResultColumn, ...] = ()
    keeps = "numbers of events, per key and pane"

    def within(self, memory: int) -> Toy:
        return self

    def in_numbers(self, numeric: str) -> Toy:
        return self

    def expected(self, state: dict[str, Any], *, beforehand: bool) -> None:
        return None

    @property
    def emission(self) -> EmissionPolicy:
        assert self.window.within is not None
        assert self.window.slide is not None
        return EmissionPolicy(self.window, Certain.WINDOW, pane=gcd(self.window.within, self.window.slide))

    def start(self) -> dict[str, Any]:
        return {"old": SUMMARY.empty_table(), "new": SUMMARY.empty_table(), "before": None, "events": 0}

    def load(self, summaries: pa.Table | None, before: int | None) -> dict[str, Any]:
        old = SUMMARY.empty_table() if summaries is None else summaries.select(SUMMARY.names)
        return self.start() | {"old": old, "before": before}

    def step(
        self, state: dict[str, Any], block: Block, watermark: int | None
    ) -> tuple[Iterator[Totals], dict[str, Any]]:
        pane = self.emission.pane or 1
        columns = [pa.array(block.key), pa.array(block.time // pane), pa.array(np.ones(len(block), np.int64))]
        state = state | {"new": pa.table(columns, schema=SUMMARY), "events": len(block)}
        found = list(self._ended(state, watermark)) if watermark is not None else []
        return iter(found), state | {"before": watermark if watermark is not None else state["before"]}

    def finish(self, state: dict[str, Any], on_progress: OnProgress | None = None) -> Iterator[Totals]:
        return self._ended(state, None)

    def kept(self, state: dict[str, Any]) -> Array | None:
        return np.zeros(state["events"], np.bool_)

    def dump(self, state: dict[str, Any], *, whole: bool = False) -> pa.Table | None:
        table = pa.concat_tables([state["old"], state["new"]]) if whole else state["new"]
        added = table.group_by([KEY, PANE]).aggregate([("sum", "sum")])
        return added.rename_columns([KEY, PANE, "sum"]) if len(added) else None

    def describe(self, state: dict[str, Any]) -> None:
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: object) -> None:
        return None

    def _ended(self, state: dict[str, Any], watermark: int | None) -> Iterator[Totals]:
        table, sums = pa.concat_tables([state["old"], state["new"]]), dict[tuple[int, int], int]()
        within, slide, pane = self.window.within or 0, self.window.slide or 1, self.emission.pane or 1
        for row in table.to_pylist():
            time = row[PANE] * pane
            for start in range(time // slide * slide, time - within, -slide):
                end, before = start + within, state["before"]
                if (before is None or end > before) and (watermark is None or end <= watermark):
                    sums[row[KEY], start] = sums.get((row[KEY], start), 0) + row["sum"]
        key, start = (np.array([one[at] for one in sums], np.int64) for at in (0, 1))
        yield Totals(key, start, {self.measure: Amounts(np.array(list(sums.values()), np.int64))})


@dataclass(frozen=True)
class Loud(SearchKernel):
    """Matches of a single event, with two columns that no engine has heard of."""

    columns = (
        ResultColumn("loudness", Kind.FLOAT, "how loud a match is"),
        ResultColumn("heard", Kind.TIME, "when it is heard", sorts=True),
    )

    def all(self, block: Block) -> Iterator[Matches]:
        (events,) = block.members
        offsets = np.arange(len(events) + 1)
        more = {"loudness": block.time[events] / 2, "heard": -block.time[events]}
        yield Matches(offsets, events, np.zeros(len(events), np.int32), None, more)
