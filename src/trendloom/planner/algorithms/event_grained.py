"""Aggregates per event, in sums, hash tables and ordered trees: mixed- and event-grained (COGRA, GRETA)."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, by_event
from trendloom.planner.request import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    return added_up(wanted, by_event)


CANDIDATE = Candidate("by event", consider)
