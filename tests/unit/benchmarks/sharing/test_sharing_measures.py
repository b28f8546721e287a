"""Streams and workloads have the properties that are stated of them; contenders give the same rows; measures run."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from benchmarks.baselines.sharing import arrange_events, count_by_prefixes, rows_of_prefixes
from benchmarks.cases.events import same_rows
from benchmarks.cases.sharing import (
    OVERLAPS,
    PLACES,
    STREAMS,
    SharingWorkload,
    common_positions,
    e_commerce,
    linear_road,
    routes,
    sharing_workload,
)
from benchmarks.harness.report import Report
from benchmarks.sharing import optimizer as sharing_optimizer
from benchmarks.sharing import plans as sharing_plans
from benchmarks.sharing import sweeps as sharing
from benchmarks.sharing.contenders import SharingCase, modulo_words, quietly

import trendloom as tl

SMALL = SharingCase(stream="e-commerce", per_window=2_000, windows=1.5, queries=4, length=4)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_in_order_with_equal_times_and_the_same_each_time(name: str) -> None:
    stream = STREAMS[name](5_000, 2.0)
    time = stream.table["time"].to_numpy()
    assert len(stream) == 10_000
    assert (time[1:] >= time[:-1]).all()
    assert len(set(time.tolist())) < len(time)
    assert set(stream.table["type"].unique().to_pylist()) <= set(stream.types)
    assert stream.table.equals(STREAMS[name](5_000, 2.0).table)
    assert sum(stream.rates().values()) == pytest.approx(10_000 / (time[-1] + 1))


def test_the_shop_has_50_items_and_20_users() -> None:
    shop = e_commerce(30_000)
    assert (len(shop.table["type"].unique()), len(shop.table["user"].unique())) == (50, 20)


def test_the_road_fills() -> None:
    road = linear_road(10_000)
    half = road.table["time"].to_numpy().max() / 2
    early = (road.table["time"].to_numpy() < half).mean()
    assert early == pytest.approx(0.375, abs=0.02)  # a rate from 1 to 3: 1.5 of 4 parts in the first half


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("overlap", OVERLAPS.values())
def test_queries_have_so_much_in_common_there_and_no_more(name: str, place: str, overlap: float) -> None:
    stream = STREAMS[name](2_000)
    workload = sharing_workload(stream, 12, 10, overlap=overlap, place=place)
    common = common_positions(10, overlap, place)
    first = {"beginning": 0, "end": 10 - common, "middle": (10 - common) // 2}[place]
    assert workload.overlap == common / 10
    assert len({word[first : first + common] for word in workload.words}) == 1
    assert len(set(workload.words)) == 12
    assert all(len(set(word)) == 10 for word in workload.words)


def test_families_have_parts_of_their_own() -> None:
    words = sharing_workload(e_commerce(1_000), 6, 6, overlap=0.5, families=3).words
    assert len({word[:3] for word in words}) == 3
    assert words[0][:3] == words[3][:3]


def test_another_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place 'top'"):
        sharing_workload(e_commerce(1_000), 6, 6, place="top")


@pytest.mark.parametrize("windows_open", [1, 4])
def test_prefix_counters_count_as_defined(windows_open: int) -> None:
    """With a type twice, and one that never comes."""
    stream = e_commerce(3_000, 2.0, rate=75)
    words = (("Item1", "Item2", "Item3"), ("Item4", "Item5", "Item4"), ("Item1", "Nothing"))
    workload = replace(sharing_workload(stream, 3, 3, windows_open=windows_open), words=words)
    expected = quietly(lambda: tl.run(workload.text(), stream.table, engine="reference"))()
    events = arrange_events(stream.table, workload.key)
    found = rows_of_prefixes(count_by_prefixes(events, workload), events, workload)
    assert len(expected) > 20
    assert same_rows(found, modulo_words(expected))


def test_words_of_counters_wrap_around() -> None:
    table = pa.table({"COUNT(*)": pa.array([5, 2**64 + 7, 2**64], pa.decimal128(38, 0))})
    assert modulo_words(table)["COUNT(*)"].to_pylist() == [5, 7]


def test_contenders_give_the_same_rows() -> None:
    contest = SMALL.contest
    expected = quietly(contest.shared)()
    assert len(expected) > 0
    for who, work in contest.contenders().items():
        assert same_rows(work(), modulo_words(expected) if who == sharing.A_SEQ else expected), who
    assert same_rows(quietly(contest.two_steps)(), expected)
    assert contest.plan().shared_groups
    assert contest.alone_after_all() == 0


def test_the_quick_form_runs_and_all_answers_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "QUICK", {"stream": "e-commerce", "per_window": 1_000, "windows": 1.0, "queries": 3})
    monkeypatch.setattr(sharing, "STREAMS", {"e-commerce": e_commerce})
    report = Report()
    sharing.measure_sharing(report, quick=True, sweeps=("two steps",))
    assert report.results
    assert all(one.checked for one in report.results)
    assert {one.name.split(": ")[1] for one in report.results} >= {
        "unshared, kernel", "shared, kernel", "A-Seq, kernel",
        "one by one, end to end", "shared, end to end", "two steps, end to end",
    }  # fmt: skip


def test_estimates_stand_beside_what_was_measured() -> None:
    report = Report()
    sharing.measure_case(report, SMALL, tries=1, memory=False)
    notes = {one.name.split(": ")[1]: one.note for one in report.results}
    assert "every query by itself: estimated" in notes["unshared, kernel"]
    assert notes["shared, kernel"].startswith("one sweep")
    assert "of it)" in notes["shared, kernel"]


def test_plans_of_sharing_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_plans, "FEW_EVENTS", 2_000)
    report = Report()
    sharing_plans.measure_sharing_plans(report, quick=True)
    assert [one.name.split(": ")[1] for one in report.results] == list(sharing_plans.PLANS)
    assert all(one.checked and one.rows for one in report.results)


def test_the_optimizer_is_measured() -> None:
    report = Report()
    for kind, words_of in sharing_optimizer.KINDS.items():
        sharing_optimizer.measure_choice(report, kind, words_of(12), 1)
    assert all(one.checked for one in report.results)
    graph = sharing_optimizer.expanded(routes(9, 5, streets=20))
    found = sharing_optimizer.heaviest_of(graph)
    assert found is not None
    assert sharing_optimizer.chosen(0, graph).found.weight == pytest.approx(found[0])


def test_a_workload_says_what_it_is() -> None:
    workload: SharingWorkload = SMALL.contest.workload
    assert workload.describe() == "4 × 4, 75% beginning, 10 open"
    assert SMALL.describe() == "e-commerce 2k, 4 × 4, 75% beginning, 10 open"
