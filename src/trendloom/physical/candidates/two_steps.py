"""Aggregates of what can only be found: matches one by one, then their sums."""

from __future__ import annotations

from dataclasses import replace

from trendloom.model.semantics import Semantics
from trendloom.physical.aggregation import NO_PIVOT
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.candidates import expansion, outside_in, postponed, runs


def consider(wanted: Wanted) -> Choice | str:
    if not wanted.aggregates:
        return "it adds up matches"
    reason = wanted.refused["pivots"]
    if reason == NO_PIVOT:
        reason = wanted.refused[_coarsest(wanted)]
    if wanted.plan.hidden and "EXISTS" not in reason:
        reason = f"EXISTS hides events, and {reason}"
    refused: dict[str, str] = {}
    for name, search in (("runs", runs.search), ("postponed", postponed.search), ("outside in", outside_in.search)):
        found = search(replace(wanted, refused=refused))
        if not isinstance(found, str):
            return replace(found, builds=False, why=f"two steps, because {reason}")
        refused[name] = found
    return replace(expansion.search(replace(wanted, refused=refused)), why=f"two steps, because {reason}")


def _coarsest(wanted: Wanted) -> str:
    """Whose obstacle says best why matches have to be found: no finer grain takes what EXISTS hides."""
    if wanted.plan.hidden:
        return "matrices"
    return "by event" if wanted.plan.semantics is Semantics.ANY else "waiting runs"


CANDIDATE = Candidate("two steps", consider)
