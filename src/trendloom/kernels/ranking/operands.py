"""Operands of a pattern that have a WITHIN of their own: which matches keep to it."""

from __future__ import annotations

import numpy as np

from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.ranking.spec import Scoring
from trendloom.model.time import Window


def inside_operand_spans(matches: Matches, block: Block, scoring: Scoring, window: Window) -> Matches:
    """The matches whose operands lie in the last part of the window, or close together. O(entries) each."""
    if not scoring.spans or not len(matches):
        return matches
    kept = np.ones(len(matches), np.bool_)
    time = block.time[matches.events]
    for span in scoring.spans:
        flags = np.isin(matches.positions, span.positions)
        first, last = (find(matches.offsets, flags) for find in (segments.first_where, segments.last_where))
        if matches.window_start is None:
            inside = time[last] - time[first] < span.within
        else:
            assert window.within is not None
            inside = time[first] >= matches.window_start + window.within - span.within
        kept &= inside | (first < 0)
    return matches if kept.all() else matches.take(np.flatnonzero(kept))
