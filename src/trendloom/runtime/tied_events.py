"""Events of a row that have no order: listed by their values, so that the order of the input does not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.spec import Place
from trendloom.runtime.blocks import Stream

Array = np.ndarray[Any, Any]


def by_content(matches: Matches, stream: Stream, block: Block, places: tuple[Place, ...]) -> Matches:
    """The same rows, events of one instant ordered by their values, then by variable. O(entries with such events)."""
    tie = block.tie_start[matches.events]
    tied = np.flatnonzero(block.tie_end[matches.events] - tie > 1)
    if not len(tied):
        return matches
    events, positions = matches.events[tied], matches.positions[tied]
    names = [place.variable for place in places]
    variable = np.array([sorted(set(names)).index(name) for name in names])[positions]
    order = np.lexsort((events, variable, stream.content_ranks(block.row[events]), tie[tied], matches.match[tied]))
    changed = replace(matches, events=matches.events.copy(), positions=matches.positions.copy())
    changed.events[tied], changed.positions[tied] = events[order], positions[order]
    return changed
