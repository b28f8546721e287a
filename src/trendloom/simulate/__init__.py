"""Seeded simulators with ground truth: streams whose anomalies have known reasons, to try `diagnose` on.

`simulate_cluster` (jobs, resources, four kinds of interference) and `simulate_supply_chain` (missing monitoring,
sub-par material), after H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", section 5.7.
"""

from trendloom.simulate.cluster import INTERFERENCE, WORKLOADS, simulate_cluster
from trendloom.simulate.simulation import SimulatedStretch, Simulation
from trendloom.simulate.supply_chain import ANOMALIES, simulate_supply_chain

__all__ = [
    "ANOMALIES",
    "INTERFERENCE",
    "WORKLOADS",
    "SimulatedStretch",
    "Simulation",
    "simulate_cluster",
    "simulate_supply_chain",
]
