"""Aggregates without finding matches, one algorithm for each grain of `planner.aggregation` (COGRA, GRETA)."""

from __future__ import annotations

from functools import partial

from trendloom.planner.aggregation import added_up, by_event, by_pivot, matrices, waiting_runs
from trendloom.planner.request import Algorithm

TYPE_GRAINED = Algorithm("matrices", partial(added_up, grained=matrices))
"""One running aggregate per position: stretches of events are matrices. Type- and pattern-grained (COGRA)."""

PATTERN_GRAINED = Algorithm("waiting runs", partial(added_up, grained=waiting_runs))
"""Runs under skip-till-next-match and contiguous: those that wait at an event share one number (COGRA)."""

EVENT_GRAINED = Algorithm("by event", partial(added_up, grained=by_event))
"""Aggregates per event, in sums, hash tables and ordered trees: mixed- and event-grained (COGRA, GRETA)."""

PIVOTS = Algorithm("pivots", partial(added_up, grained=by_pivot))
"""Aggregates for every event that a variable binds once in every match: its conditions are then about one event."""
