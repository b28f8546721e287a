"""Queries of a live stream whose events travel together: one parcel of events for all of them, in each bucket of keys.

A checkpoint made before bundles existed has a state for every query and bucket; its queries travel alone, as ever. So
do queries over a checkpoint that nobody named beforehand. If that holds states of bundles, these must not be passed
over: so as long as queries travel alone, every batch also asks for states under the names of bundles (*probes*).

Within a bundle, those flows that are marked so are answered together, and have one state (`together`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.logical.workload import Attributes, Workload
from trendloom.optimizer.share_scan import find_key_sets
from trendloom.planner.sharing import kernel_for
from trendloom.streaming.partition_groups import FlowsTogether
from trendloom.streaming.streaming_query import Flow


@dataclass(frozen=True)
class Bundle:
    """`name` stands in parcels and keys of state. `shared`: state has a drawer for each of the flows.

    `group`: those of the flows that are answered together.
    """

    name: str
    attributes: Attributes
    flows: tuple[Flow, ...]
    shared: bool = True
    group: FlowsTogether | None = None

    @cached_property
    def takers(self) -> tuple[Flow | FlowsTogether, ...]:
        """Who keeps events: single flows, and the group."""
        apart = tuple(flow for flow in self.flows if self.group is None or flow not in self.group.flows)
        return apart if self.group is None else (*apart, self.group)


def flows_of_taker(taker: Flow | FlowsTogether) -> tuple[Flow, ...]:
    return taker.flows if isinstance(taker, FlowsTogether) else (taker,)


def bundles_of(flows: tuple[Flow, ...], statistics: StatisticsOf = nothing_known) -> tuple[Bundle, ...]:
    """The flows by their sets of partition attributes."""
    key_sets = find_key_sets(Workload(tuple(flow.physical.plan for flow in flows))).key_sets
    found = []
    for keys in key_sets:
        some = tuple(flows[number] for number in keys.members)
        group = _group([flow for flow in some if flow.together], keys.attributes, statistics)
        found.append(Bundle(f" by {', '.join(keys.attributes)}", keys.attributes, some, group=group))
    return tuple(found)


def _group(flows: list[Flow], attributes: Attributes, statistics: StatisticsOf) -> FlowsTogether | None:
    if not flows:
        return None
    kernel = kernel_for([flow.physical for flow in flows], attributes, statistics, flows[0].numeric)
    return FlowsTogether(tuple(flows), kernel)


def names_together(flows: tuple[Flow, ...]) -> tuple[str, ...]:
    """Under which names the states of flows would lie if they travelled together."""
    return tuple(bundle.name for bundle in bundles_of(flows))


def alone(flows: tuple[Flow, ...]) -> tuple[Bundle, ...]:
    """Every flow by itself, under its own name."""
    return tuple(Bundle(flow.name, flow.physical.plan.keys, (flow,), shared=False) for flow in flows)
