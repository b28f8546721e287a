"""Aggregates per event, in sums, hash tables and ordered trees: mixed- and event-grained (COGRA, GRETA)."""

from __future__ import annotations

from trendloom.physical.added_up import added_up
from trendloom.physical.aggregation import by_event
from trendloom.physical.candidate import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    return added_up(wanted, by_event)


CANDIDATE = Candidate("by event", consider)
