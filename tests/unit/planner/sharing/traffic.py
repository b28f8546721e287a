"""The traffic workload of "Sharon", figure 1, whose weights are those of its figure 4."""

from __future__ import annotations

from trendloom.planner.sharing.choose_plan import chosen
from trendloom.planner.sharing.conflict_graph import ConflictGraph, graph_of, mine_segments
from trendloom.planner.sharing.groups import Considered, Way

ROUTES = [
    ("Oak", "Main", "State"),
    ("Oak", "Main", "West"),
    ("Linden", "Park", "Oak", "Main"),
    ("Park", "Oak", "Main", "West"),
    ("Main", "State"),
    ("East", "Elm", "Park"),
    ("Elm", "Park", "Green"),
]
"""Its queries q1 to q7 are 0 to 6 here."""
NAMES = tuple(f"q{number}" for number in range(1, 8))
WEIGHTS = {
    ("Oak", "Main"): 25.0,
    ("Park", "Oak"): 9.0,
    ("Park", "Oak", "Main"): 12.0,
    ("Main", "West"): 15.0,
    ("Oak", "Main", "West"): 20.0,
    ("Main", "State"): 8.0,
    ("Elm", "Park"): 18.0,
}
"""The candidates p1 to p7."""


def traffic_graph() -> ConflictGraph:
    by_steps = {one.steps: one for one in mine_segments(ROUTES)}
    return graph_of([(by_steps[letters], weight) for letters, weight in WEIGHTS.items()])


def considered_traffic() -> Considered:
    ways = (Way("each by itself", 0.9), Way("one sweep, common prefixes once", 0.25), Way("shared segments", 0.3))
    return Considered(NAMES, tuple(ROUTES), chosen(7, traffic_graph()), ways, 1)
