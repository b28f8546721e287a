"""The simulated cluster: the same by seed, reports at their rate, and interference moves what it should."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.simulate import INTERFERENCE, WORKLOADS, SimulatedStretch, Simulation, simulate_cluster


@cache
def simulation(kind: str = "memory", program: str = "sessions", seed: int = 1) -> Simulation:
    return simulate_cluster(kind, program, seed, nodes=6, runs=4)


def events_of(kind: str, events: pa.Table) -> pa.Table:
    return events.filter(pc.equal(events["type"], kind))


def values_in(found: Simulation, kind: str, attribute: str, stretches: tuple[SimulatedStretch, ...]) -> np.ndarray:
    events = events_of(kind, found.events)
    time = events["time"].cast(pa.int64()).to_numpy()
    inside = np.any([(time >= one.low) & (time < one.high) for one in stretches], axis=0)
    return events[attribute].to_numpy()[inside]


def apart(found: Simulation, kind: str, attribute: str) -> float:
    """By how many standard deviations of the reference the means differ."""
    abnormal, reference = (values_in(found, kind, attribute, some) for some in (found.abnormal, found.reference))
    return abs(abnormal.mean() - reference.mean()) / reference.std()


def test_the_same_seed_gives_the_same_events() -> None:
    again = simulate_cluster("memory", "sessions", 1, nodes=6, runs=4)
    assert again.events.equals(simulation().events)
    assert again.abnormal == simulation().abnormal
    assert not simulation(seed=2).events.equals(simulation().events)


def test_nodes_report_at_their_rate() -> None:
    events = events_of("Memory", simulation().events)
    one = events.filter(pc.equal(events["node"], "node-03"))["time"].cast(pa.int64()).to_numpy()
    gaps = np.diff(one) / 1e6
    assert np.all(np.abs(gaps - 15.0) < 0.01)
    assert len(pc.unique(events["node"])) == 6


def test_times_ascend_and_columns_of_other_types_are_null() -> None:
    events = simulation().events
    assert np.all(np.diff(events["time"].cast(pa.int64()).to_numpy()) >= 0)
    memory = events_of("Memory", events)
    assert memory["user"].null_count == len(memory)
    assert memory["free"].null_count == 0


def test_percentages_of_the_processor_add_up() -> None:
    cpu = events_of("CPUUsage", simulation("cpu").events)
    shares = [cpu[name].to_numpy() for name in ("user", "system", "iowait", "nice", "idle")]
    np.testing.assert_allclose(np.sum(shares, axis=0), 100.0, atol=0.001)
    assert min(share.min() for share in shares) >= 0.0


@pytest.mark.parametrize("kind", INTERFERENCE)
def test_interference_moves_its_own_metrics(kind: str) -> None:
    found = simulation(kind)
    assert found.truth == INTERFERENCE[kind]
    for cause in found.truth:
        assert max(apart(found, of, attribute) for of, attribute in cause if attribute) > 2.0


def test_interference_leaves_other_metrics_alone() -> None:
    found = simulation("network")
    untouched = (("Memory", "free"), ("Swap", "free"), ("CPUUsage", "nice"), ("Disk", "free"), ("Daemon", "heap"))
    assert max(apart(found, kind, attribute) for kind, attribute in untouched) < 1.5


def test_the_query_shows_the_anomaly() -> None:
    found = simulation()
    mine = tl.run(found.query, found.events.filter(pc.equal(found.events["job"], found.partition)))
    low, high = (mine[name].cast(pa.int64()).to_numpy() for name in ("window_start", "window_end"))
    moved = mine["moved"].to_numpy()

    def during(stretches: tuple[SimulatedStretch, ...]) -> np.ndarray:
        return moved[np.any([(low >= one.low) & (high <= one.high) for one in stretches], axis=0)]

    assert np.median(during(found.abnormal)) < 0.6 * np.median(during(found.reference))


def test_related_runs_are_those_of_the_same_program_and_data() -> None:
    found = simulation()
    starts = events_of("JobStart", found.events)
    same = starts.filter(pc.equal(starts["program"], "sessions"))["job"].to_pylist()
    assert sorted([*found.related, found.partition]) == sorted(same)
    assert len(same) == 4
    assert {one.partition for one in found.spans} == set(starts["job"].to_pylist())


def test_marked_stretches_lie_in_their_run_and_apart() -> None:
    for seed in range(3):
        found = simulation("disk", "frequent-users", seed)
        (abnormal,) = found.abnormal
        span = next(one for one in found.spans if one.partition == found.partition)
        assert span.low <= abnormal.low < abnormal.high <= span.high
        assert all(one.high <= abnormal.low or one.low >= abnormal.high for one in found.reference)
        assert all(span.low <= one.low < one.high <= span.high for one in found.reference)


def test_workloads_are_those_of_the_figure() -> None:
    assert len(set(WORKLOADS)) == 8
    assert {kind for kind, _ in WORKLOADS} == set(INTERFERENCE)


def test_what_there_is_not_is_an_error_that_says_what_there_is() -> None:
    with pytest.raises(OptionError, match="no kind of interference 'memry'") as error:
        simulate_cluster("memry", "sessions", 1)
    assert error.value.hint == "did you mean 'memory'?"
    with pytest.raises(OptionError, match="no program 'sorting'"):
        simulate_cluster("cpu", "sorting", 1)
    with pytest.raises(OptionError, match="with 1 runs has no anomaly"):
        simulate_cluster("cpu", "sessions", 1, runs=1)
