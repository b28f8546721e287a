"""Queries of a live stream whose events travel together: one parcel of events for all of them, in each bucket of keys.

A checkpoint made before bundles existed has a state for every query and bucket; its queries travel alone, as ever. So
do queries over a checkpoint that nobody named beforehand. If that holds states of bundles, these must not be passed
over: so as long as queries travel alone, every batch also asks for states under the names of bundles (*probes*).
"""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.engines.live.flow import Flow
from trendloom.optimize.find_key_sets import find_key_sets
from trendloom.plan.workload import Attributes, Workload


@dataclass(frozen=True)
class Bundle:
    """`name` stands in parcels and keys of state. `shared`: state has a drawer for each of the flows."""

    name: str
    attributes: Attributes
    flows: tuple[Flow, ...]
    shared: bool = True


def bundles_of(flows: tuple[Flow, ...]) -> tuple[Bundle, ...]:
    """The flows by their sets of partition attributes."""
    key_sets = find_key_sets(Workload(tuple(flow.physical.plan for flow in flows))).key_sets
    return tuple(
        Bundle(f" by {', '.join(keys.attributes)}", keys.attributes, tuple(flows[number] for number in keys.members))
        for keys in key_sets
    )


def names_together(flows: tuple[Flow, ...]) -> tuple[str, ...]:
    """Under which names the states of flows would lie if they travelled together."""
    return tuple(bundle.name for bundle in bundles_of(flows))


def alone(flows: tuple[Flow, ...]) -> tuple[Bundle, ...]:
    """Every flow by itself, under its own name."""
    return tuple(Bundle(flow.name, flow.physical.plan.partition, (flow,), shared=False) for flow in flows)
