"""Aggregates that are added up without finding the matches: what all grains share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from trendloom.kernels.aggregate.event_grained.structures import structures
from trendloom.kernels.aggregate.kernel import AggregationKernel
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Detection
from trendloom.kernels.measures import AggregationSpec, Grain, Measure
from trendloom.logical.display import Branch
from trendloom.logical.plan import Aggregation
from trendloom.planner.aggregation import Grained, measures_of
from trendloom.planner.estimates import estimate_totals
from trendloom.planner.exists import COUNTED, describe_hiding
from trendloom.planner.request import Choice, Wanted
from trendloom.planner.summaries import summary_obstacle

IDEAS = {
    Grain.TYPE: "add up all partial matches that end at a position, without building one",
    Grain.PATTERN: "add up all runs that wait at a position, without following one",
    Grain.MIXED: "add up partial matches per event, found by position or in ordered structures",
    Grain.EVENT: "add up partial matches per event, comparing it with the events before it",
}


def added_up(wanted: Wanted, grained: Callable[[Detection], Grained | str]) -> Choice | str:
    """A grain for an aggregating plan, if it is right."""
    output = wanted.plan.output
    if not isinstance(output, Aggregation):
        return "it adds up matches, and finds none"
    found = grained(replace(wanted.detection, sieves=()))  # they number steps of a machine that finds matches
    if isinstance(found, str):
        return found
    measures = tuple(_shown(measure, wanted.detection) for measure in measures_of(wanted.plan))
    spec = replace(found.aggregation, measures=measures)
    having = ", keep rows that pass HAVING" if output.having is not None else ""
    return Choice(
        AggregationKernel(spec, "exact", summary_obstacle(wanted.plan, spec) is None),
        f"{spec.grain.value}: {IDEAS[spec.grain]}",
        found.reason,
        found.cost,
        f"one step: aggregates per group and window{having}",
        structures=tuple(_structures(spec)),
        notes=describe_hiding(wanted.detection, COUNTED),
        estimate=estimate_totals(wanted),
    )


def _shown(measure: Measure, detection: Detection) -> Measure:
    """The measure over the events that EXISTS does not hide."""
    if measure.positions is None or not detection.hidden:
        return measure
    return replace(measure, positions=tuple(at for at in measure.positions if at not in detection.hidden))


def _structures(spec: AggregationSpec) -> Iterator[Branch]:
    """Where aggregates are looked up, transition by transition, if that differs."""
    if spec.grain not in (Grain.MIXED, Grain.EVENT):
        return
    places, of_state = spec.detection.places, spec.detection.scopes[0].template.position_of
    names = {number: f"{number}:{place.variable}" for number, place in enumerate(places)}
    for state, step, structure in structures(spec, Machine(spec.detection)):
        yield Branch(f"{names[of_state[state]]} → {names[step.position]}", structure)
