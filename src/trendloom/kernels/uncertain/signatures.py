"""Signatures as the search hands them over: which events, at which positions, and who must not lie in between.

A signature is a list of events with positions that may be a match; how likely it is one, and when, `confidence` says.
All times are points. Flat arrays, one chunk at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.segments import gather_segments


@dataclass(frozen=True, eq=False)
class Rivals:
    """Events outside a signature that matter for it, sorted by signature, then event, then gap.

    Gap g of a signature is the open interval between its g-th event and the next: gap 1 is between the first and the
    second, gap 0 before the first, gap n after the last. `forbidden`: the signature is no match if the event lies in
    the gap, unless it is excused: `excused_by` are bits of excuses, and the event is harmless if another with one of
    these bits in `excuses` lies in the same gap strictly before it.
    """

    offsets: Array
    event: Array
    gap: Array
    forbidden: Array
    excused_by: Array
    excuses: Array

    def __len__(self) -> int:
        """How many signatures it speaks of."""
        return len(self.offsets) - 1

    def take(self, rows: Array) -> Rivals:
        """Those of some signatures, in the order given."""
        offsets = np.r_[0, np.cumsum(np.diff(self.offsets)[rows])].astype(np.int64)

        def of(column: Array) -> Array:
            return gather_segments(self.offsets, column, rows, offsets)

        return Rivals(
            offsets, of(self.event), of(self.gap), of(self.forbidden), of(self.excused_by), of(self.excuses)
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Signatures:
    """Signature s binds `events[offsets[s]:offsets[s + 1]]` (indices into the block) at `positions`, in order.

    `window`: of each the first and the last point of its window, both included; None: there are no windows that slide.
    `span`: in points, the last event comes less than this after the first; None: it may take any time.
    """

    offsets: Array
    events: Array
    positions: Array
    window: Array | None
    span: int | None
    rivals: Rivals | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: Array) -> Signatures:
        """Some of the signatures, in the order given."""
        offsets = np.r_[0, np.cumsum(np.diff(self.offsets)[rows])].astype(np.int64)
        return Signatures(
            offsets,
            gather_segments(self.offsets, self.events, rows, offsets),
            gather_segments(self.offsets, self.positions, rows, offsets),
            None if self.window is None else self.window[rows],
            self.span,
            None if self.rivals is None else self.rivals.take(rows),
        )
