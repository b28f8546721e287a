"""The kernel of imprecise time on what the engine hands it: the search and the confidences, together and apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.baselines.imprecise_confidences import Signatures as Expected
from benchmarks.harness.planned import planned
from trendloom.kernels.columns.block import IntervalBlock, with_intervals
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.uncertain.confidence.confidence import confidences_of
from trendloom.kernels.uncertain.kernel import signatures_of
from trendloom.kernels.uncertain.signatures import Signatures
from trendloom.model.imprecision import Intervals

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A query of fixed length over a sorted block; `id` numbers its events as the table does."""

    pattern_spec: PatternSpec
    block: IntervalBlock
    id: Array

    def search(self, threshold: Fraction | None = None) -> list[Signatures]:
        """Signatures that may be matches at least so likely."""
        return list(signatures_of(self.pattern_spec, self.block, threshold=threshold))

    def weigh(self, found: list[Signatures], threshold: Fraction | None = None) -> Expected:
        """The matches among them, and how likely they are."""
        length = int(found[0].matches.offsets[1]) if found else 1
        rows = [np.zeros((0, length), np.int64)]
        columns: list[list[Array]] = [[], [], []]
        for some in found:
            weighed, kept = confidences_of(some, self.block, threshold)
            rows.append(self.id[some.matches.events.reshape(-1, length)[kept]])
            for column, values in zip(columns, (weighed.confidence, weighed.low, weighed.high), strict=True):
                column.append(values[kept])
        return Expected(np.concatenate(rows), *(np.concatenate([np.zeros(0), *some]) for some in columns))

    def run(self, threshold: Fraction | None = None) -> Expected:
        return self.weigh(self.search(threshold), threshold)


def prepared(text: str, events: pa.Table) -> Prepared:
    """Plan a query over events between `low` and `high`, sort them by their earliest time."""
    case = planned(text, events.append_column("time", events["low"]))
    low, high = (events[name].to_numpy() for name in ("low", "high"))
    block = with_intervals(case.block, Intervals(low, high), 1)
    return Prepared(case.physical.pattern_spec, block, events["id"].to_numpy()[block.row])
