"""NOTs that depend on one event next to them, as comparisons of the two events of a step."""

from __future__ import annotations

from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Absence, EmptyGap

SEVERAL_WAYS = "there are several ways to derive a match"


def empty_gaps(machine: Machine) -> tuple[EmptyGap, ...] | str:
    """One for each such NOT of the pattern, equal NOTs together; or why a step is possible although one is violated."""
    found: dict[Absence, set[tuple[int, int]]] = {}
    for state, steps in enumerate(machine.moves[0]):
        for step in steps:
            absences = [machine.spec.scopes[crossing.scope].absence for way in step.ways for crossing in way]
            for absence in absences:
                if absence is not None:
                    found.setdefault(absence, set()).add((state, step.number))
            if any(absences) and len(step.ways) > 1:
                return SEVERAL_WAYS
    return tuple(EmptyGap(absence, frozenset(steps)) for absence, steps in found.items())
