"""Which rules compare two consecutive events of a run: `left(e) op right(f)`, two columns and an operator.

If all rules are such pairs and all NOTs are thresholds or pairs of columns, too, the successor of an event depends on
that event alone, and runs can be followed by a table of successors.
"""

from __future__ import annotations

from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Compared, Detection, Pair
from trendloom.planner.adjacency import adjacent
from trendloom.planner.empty_gaps import SEVERAL_WAYS, empty_gaps

MOST_POSITIONS = 64


def pairs_of(detection: Detection) -> tuple[tuple[Compared, ...], str | None]:
    """The pairs, or the reason why a run cannot be followed by its last event alone."""
    machine = Machine(detection)
    obstacle = _obstacle(detection, machine)
    pairs: list[Pair] = []
    for rule in detection.scopes[0].rules if obstacle is None else ():
        found, obstacle = adjacent(rule, detection, machine)
        if not isinstance(found, Pair):
            return (), obstacle or "a predicate is not a comparison of one event with the other"
        pairs.append(found)
    gaps = empty_gaps(machine)
    if obstacle is not None or isinstance(gaps, str):
        return (), obstacle or SEVERAL_WAYS
    return (*pairs, *gaps), None


def _obstacle(detection: Detection, machine: Machine) -> str | None:
    if detection.scopes[0].open_ended:
        return "a leading or trailing NOT is decided on each complete match"
    return run_obstacle(detection, machine)


def run_obstacle(detection: Detection, machine: Machine) -> str | None:
    """Why steps of a run depend on more than two events, leading and trailing NOTs aside."""
    if len(detection.places) > MOST_POSITIONS:
        return f"the pattern has more than {MOST_POSITIONS} positions"
    if machine.ambiguous or any(len(step.ways) > 1 for steps in machine.moves[0] for step in steps):
        return SEVERAL_WAYS
    for scope in detection.scopes[1:]:
        if scope.parent == 0 and (scope.waits or scope.open_ended):
            return "a NOT depends on the match around it"
    return None
