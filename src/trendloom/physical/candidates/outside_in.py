"""Sequences of single events under skip-till-any-match, with conditions between any of them: outside in, by cost.

See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 3, on iterative evaluation.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.ground.machine import Machine
from trendloom.kernels.ground.spec import Detection
from trendloom.kernels.nested.kernel import JoiningKernel
from trendloom.model.semantics import Semantics
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.search import ADDED_UP, searched


def consider(wanted: Wanted) -> Choice | str:
    return ADDED_UP if wanted.aggregates else search(wanted)


def search(wanted: Wanted) -> Choice | str:
    """The same, whatever becomes of the matches."""
    if wanted.plan.semantics is not Semantics.ANY:
        return "it binds events in any order, and runs grow from their first event on"
    obstacle = _obstacle(wanted.detection)
    if obstacle is not None:
        return obstacle
    found = searched(
        wanted,
        JoiningKernel(wanted.detection),
        None,
        "outside in: bind components in the order that costs least, each between those that are bound",
        f"skip-till-any-match, but {wanted.refused['postponed']}",
        "O(extensions tried · log events + output), in bounded memory",
    )
    return replace(found, builds=True)


def _obstacle(detection: Detection) -> str | None:
    """Why a match is not one event for each component, in the order of the pattern."""
    machine, template = Machine(detection), detection.scopes[0].template
    names = [detection.places[position].variable for position in template.position_of]
    straight = len(machine.starts[0]) == 1 and all(
        len(steps) == (0 if state == len(names) - 1 else 1) for state, steps in enumerate(machine.moves[0])
    )
    ends = [state for state, ways in enumerate(template.accepts) if ways]
    if not straight or ends != [len(names) - 1] or len(set(names)) < len(names):
        return "the pattern is not one event for each component, one after the other"
    if len(names) < 2:
        return "a match is one event"
    return None


CANDIDATE = Candidate("outside in", consider)
