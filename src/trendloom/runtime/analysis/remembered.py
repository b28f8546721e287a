"""What of a partial match decides how it can go on: the variables that conditions look back at.

Where it is the last event alone, all partial matches that end with it are alike. See `kernels.search.reached_events`.
"""

from __future__ import annotations

from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Detection
from trendloom.planner.adjacency import adjacent


def remembered(detection: Detection) -> frozenset[str] | None:
    """Variables that bind one event each, besides the last event; None: everything may matter."""
    machine = Machine(detection)
    if machine.ambiguous or any(place.branch for place in detection.places):
        return None
    names: set[str] = set()
    for rule in detection.scopes[0].rules:
        if adjacent(rule, detection, machine)[0] is None:
            names |= rule.shape.variables
    for scope in detection.scopes[1:]:
        names |= scope.outer if scope.parent == 0 and scope.waits else frozenset()
    return None if names & detection.plural else frozenset(names)
