"""What is known of a stream before a query runs over it: how many events, of which types and keys, what passes.

Every figure is optional: what was not examined stays unknown, and no answer depends on any of it. The room
`engines.introspection` builds them of events, of the footers of Parquet files, and of what a live stream keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from trendloom.logical.plan import Attributes, Plan
from trendloom.model.time import Window


class Origin(Enum):
    """Where figures come from."""

    NOTHING = "nothing"
    FOOTERS = "the footers of Parquet files"
    BATCHES = "earlier micro-batches"
    SAMPLE = "a sample"
    EVENTS = "all events"


@dataclass(frozen=True)
class KeySpread:
    """How events spread over keys: how many `distinct` keys there are, and the share of events of the largest."""

    distinct: float
    greatest: float | None = None

    def classes(self) -> tuple[tuple[float, float], ...]:
        """Keys by their size: (how many, which share of the events each has). The largest, then all others alike."""
        if not self.distinct:
            return ()
        if self.greatest is None or self.distinct <= 1 or self.greatest * self.distinct <= 1:
            return ((self.distinct, 1 / self.distinct),)
        others = self.distinct - 1
        return (1.0, self.greatest), (others, (1 - self.greatest) / others)


ONE_KEY = KeySpread(1.0, 1.0)


@dataclass(frozen=True)
class Statistics:
    """Figures of one stream, and of one query over it as far as they are about its pattern.

    `events`: in the whole stream; `types`: events of each type; `first` and `last`:
    the times they span, in ticks; `keys`: by the columns that make a key; `values`: distinct values by column, and
    `domains` by type and column.

    Of the query: `relevant` events are those that its kernel sees. `fitting`: how many events fit each position, by
    type and conditions on them alone. `passing`: of an event that fits one position and the next later one of its key
    that fits another, the share of such pairs that pass all conditions on these two as neighbours.
    """

    origin: Origin = Origin.NOTHING
    events: float | None = None
    types: Mapping[str, float] = field(default_factory=dict)
    first: int | None = None
    last: int | None = None
    keys: Mapping[Attributes, KeySpread] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    domains: Mapping[tuple[str, str], float] = field(default_factory=dict)
    relevant: float | None = None
    fitting: Mapping[int, float] = field(default_factory=dict)
    passing: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @property
    def span(self) -> int | None:
        """The length of the time that events span, in ticks."""
        return None if self.first is None or self.last is None else self.last - self.first + 1

    def spread(self, attributes: Attributes) -> KeySpread | None:
        """How events spread over the values of these columns; all are of one key where there are none."""
        return self.keys.get(attributes) if attributes else ONE_KEY

    def share_of_time(self, window: Window) -> float | None:
        """How much of the stream's time a window holds, at most all of it."""
        if window.within is None:
            return 1.0
        return None if self.span is None else min(window.within / self.span, 1.0)

    def windows(self, window: Window) -> float | None:
        """How many sliding windows overlap the time of the stream; 1 where windows do not slide."""
        if window.slide is None:
            return 1.0
        if self.first is None or self.last is None:
            return None
        assert window.within is not None
        return float(self.last // window.slide - (self.first - window.within) // window.slide)


UNKNOWN = Statistics()

StatisticsOf = Callable[[Plan], Statistics]
"""What is known of the stream of a bound query."""


def nothing_known(plan: Plan) -> Statistics:
    """Nothing is known of the stream."""
    return UNKNOWN
