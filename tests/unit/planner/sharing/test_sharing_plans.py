"""The optimizer of sharing: the running example of its paper, and random workloads against looking at everything."""

from __future__ import annotations

from itertools import pairwise

import pytest
from benchmarks.baselines.sharing_plans import PerStartBenefit, heaviest, heaviest_of_all_sets, valid_plans
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.planner.sharing.traffic import ROUTES, WEIGHTS, traffic_graph

from trendloom.planner.sharing.choose_plan import (
    bound_plans,
    choose_plan,
    chosen,
    components,
    find_plan,
    greedy,
    guaranteed_weight,
)
from trendloom.planner.sharing.conflict_graph import (
    ConflictGraph,
    Reduction,
    SearchBudget,
    SharedSegment,
    bits,
    conflict_graph,
    expand_candidates,
    graph_of,
    members,
    mine_segments,
    options_of,
    reduce_graph,
)


def weight_of(segment: SharedSegment) -> float:
    return WEIGHTS[segment.steps]  # type: ignore[index]


@pytest.fixture
def traffic() -> ConflictGraph:
    return traffic_graph()


class TestRunningExample:
    def test_the_candidates_are_those_of_table_1(self) -> None:
        found = {one.steps: sorted(one.queries) for one in mine_segments(ROUTES)}
        assert found == {
            ("Oak", "Main"): [0, 1, 2, 3],
            ("Park", "Oak"): [2, 3],
            ("Park", "Oak", "Main"): [2, 3],
            ("Main", "West"): [1, 3],
            ("Oak", "Main", "West"): [1, 3],
            ("Main", "State"): [0, 4],
            ("Elm", "Park"): [5, 6],
        }

    def test_conflicts_and_the_guaranteed_weight(self, traffic: ConflictGraph) -> None:
        assert [near.bit_count() for near in traffic.near] == [5, 3, 4, 3, 4, 1, 0]
        assert round(guaranteed_weight(traffic), 2) == 38.57

    def test_p3_is_out_and_p7_is_in(self, traffic: ConflictGraph) -> None:
        reduction = reduce_graph(traffic, guaranteed_weight(traffic))
        assert reduction == Reduction(left=bits([0, 1, 3, 4, 5]), certain=bits([6]), pruned=bits([2]))

    def test_ten_plans_are_valid_and_the_best_has_score_50(self, traffic: ConflictGraph) -> None:
        left = reduce_graph(traffic, guaranteed_weight(traffic)).left
        assert len(list(valid_plans(traffic, left))) == 10
        best = heaviest(traffic, left) | bits([6])
        assert (best, traffic.weight(best)) == (bits([1, 3, 5, 6]), 50)
        found = chosen(7, traffic).found
        assert (found.plan, found.weight, found.is_best) == (best, 50, True)

    def test_greedy_has_score_43(self, traffic: ConflictGraph) -> None:
        assert greedy(traffic) == bits([0, 6])
        assert traffic.weight(greedy(traffic)) == 43

    def test_options_of_p1(self, traffic: ConflictGraph) -> None:
        """Examples 24.1 to 24.3 of the thesis: p1 can be shared by fewer queries, the others cannot."""
        options = [
            options_of(one, [traffic.segments[other] for other in members(traffic.near[vertex])])
            for vertex, one in enumerate(traffic.segments)
        ]
        assert {tuple(sorted(one.queries)) for one in options[0]} == {(0, 1, 2, 3), (0, 1), (0, 2), (1, 2, 3)}
        assert [len(some) for some in options] == [4, 1, 1, 1, 1, 1, 1]
        free = next(one for one in options[0] if one.queries == {0, 2})
        assert not any(free.conflicts_in(traffic.segments[other]) for other in (3, 4))
        expanded = expand_candidates(traffic, lambda one: weight_of(one) / 2)
        assert len(expanded.segments) == 10
        of_p1 = bits(at for at, one in enumerate(expanded.segments) if one.steps == ("Oak", "Main"))
        assert all(expanded.near[vertex] & of_p1 == of_p1 & ~(1 << vertex) for vertex in members(of_p1))


def test_a_candidate_inside_another_is_in_conflict_with_it() -> None:
    """The end of neither is the beginning of the other."""
    outer, inner = SharedSegment(("A", "B", "C", "D"), ((0, 0), (1, 0))), SharedSegment(("B", "C"), ((0, 1), (1, 1)))
    assert outer.conflicts_in(inner) == inner.conflicts_in(outer) == {0, 1}


def test_certain_candidates_count_when_others_are_judged() -> None:
    """Without the benefit of what was set aside, the better of two segments in conflict would seem too light."""
    alone = SharedSegment(("X", "Y"), ((4, 0), (5, 0)))
    one, other = SharedSegment(("A", "B"), ((0, 0), (1, 0))), SharedSegment(("B", "C"), ((0, 1), (2, 0)))
    graph = graph_of([(alone, 100.0), (one, 10.0), (other, 9.0)])
    assert reduce_graph(graph, guaranteed_weight(graph)) == Reduction(left=0, certain=bits([0, 1]), pruned=bits([2]))


def test_benefit_as_in_the_equations() -> None:
    words = [("A", "B", "C", "D"), ("E", "B", "C"), ("B", "C")]
    rates = {"A": 2.0, "B": 3.0, "C": 5.0, "D": 7.0, "E": 11.0}
    benefit = PerStartBenefit(words, rates.__getitem__)  # type: ignore[arg-type]
    (segment,) = (one for one in mine_segments(words) if one.steps == ("B", "C"))
    alone = 2 * (2 + 3 + 5 + 7) + 11 * (11 + 3 + 5) + 3 * (3 + 5)
    shared = 3 * (3 + 5) + (2 * 2 + 7 * 7 + 2 * 3 * 7) + (11 * 11 + 11 * 3) + 0
    assert benefit(segment) == alone - shared


def test_a_type_that_repeats_multiplies_the_work() -> None:
    benefit = PerStartBenefit([("A", "B", "A")], lambda _: 2.0)
    assert benefit.alone(("A", "B", "A")) == 2 * 6


words_of_few = st.lists(st.lists(st.sampled_from("ABC"), min_size=0, max_size=6).map(tuple), min_size=1, max_size=6)


@given(words_of_few)
def test_every_common_segment_is_found_once(words: list[tuple[str, ...]]) -> None:
    found = mine_segments(words)
    assert len({one.steps for one in found}) == len(found)
    wanted = {}
    for word in words:
        for first in range(len(word)):
            for end in range(first + 2, len(word) + 1):
                letters = word[first:end]
                inside = [
                    number
                    for number, other in enumerate(words)
                    if any(other[at : at + len(letters)] == letters for at in range(len(other)))
                ]
                if len(inside) > 1:
                    wanted[letters] = inside
    assert {one.steps: sorted(one.queries) for one in found} == wanted
    for one in found:
        for query, first in one.places:
            assert words[query][first : first + len(one.steps)] == one.steps
        for (query, first), (other, second) in pairwise(one.places):
            assert query != other or first + len(one.steps) <= second


def _are_apart(one: tuple[int, int], other: tuple[int, int], length: int) -> bool:
    return one[0] != other[0] or one[1] + length <= other[1]


@st.composite
def graphs(draw: st.DrawFn) -> ConflictGraph:
    """Of any kind: places are drawn, not mined."""
    count = draw(st.integers(0, 9))
    segments = []
    for number in range(count):
        letters = (*"AB"[: draw(st.integers(1, 2))], number)
        drawn = sorted({(draw(st.integers(0, 2)), draw(st.integers(0, 8))) for _ in range(draw(st.integers(1, 3)))})
        places = [place for at, place in enumerate(drawn) if not at or _are_apart(drawn[at - 1], place, len(letters))]
        segments.append(SharedSegment(letters, tuple(places)))
    weights = [float(draw(st.integers(1, 20))) for _ in range(count)]
    return graph_of(list(zip(segments, weights, strict=True)))


@given(graphs())
def test_the_best_plan_is_found_and_reducing_loses_nothing(graph: ConflictGraph) -> None:
    for at, one in enumerate(graph.segments):
        near = bits(n for n, other in enumerate(graph.segments) if n != at and one.conflicts_in(other))
        assert graph.near[at] == near
    best = graph.weight(heaviest_of_all_sets(graph))
    assert graph.weight(heaviest(graph)) == best
    found = find_plan(graph)
    assert graph.is_valid(found.plan)
    assert (graph.weight(found.plan), found.weight, found.bound) == (best, best, best)
    assert sum(components(graph, graph.all)) == graph.all
    assert guaranteed_weight(graph) <= graph.weight(greedy(graph)) + 1e-9
    assert graph.is_valid(greedy(graph))
    for least in (guaranteed_weight(graph), graph.weight(greedy(graph))):
        reduction = reduce_graph(graph, least)
        assert graph.weight(heaviest(graph, reduction.left) | reduction.certain) == best
        assert reduction.left | reduction.certain | reduction.pruned == graph.all
    assert chosen(0, graph).found.weight == best
    for rounds in (1, 3, 50):
        bound = bound_plans(graph, graph.weight(greedy(graph)), rounds=rounds)
        assert bound.weight >= best - 1e-6
        assert graph.weight(heaviest(graph, graph.all & ~bound.out)) == best


@given(words_of_few, st.integers(1, 5))
def test_options_never_make_a_plan_worse(words: list[tuple[str, ...]], rate: int) -> None:
    benefit = PerStartBenefit(words, lambda _: float(rate))
    plain = conflict_graph(mine_segments(words), benefit)
    found = choose_plan(words, benefit, None)
    assert found.found.is_best
    assert found.found.weight >= find_plan(plain).weight - 1e-9
    assert all(len(one.queries) > 1 for one in found.segments)
    for at, one in enumerate(found.segments):
        assert not any(one.conflicts_in(other) for other in found.segments[at + 1 :])


def pieces(queries: int, length: int, letters: int) -> list[tuple[str, ...]]:
    """Words that overlap with many others, at many places."""
    return [tuple(str((number * 3 + place) % letters) for place in range(length)) for number in range(queries)]


def test_options_are_capped_and_the_heaviest_segments_have_them() -> None:
    words = pieces(30, 8, 20)
    benefit = PerStartBenefit(words, lambda letter: 1.0 + int(str(letter)) % 5)
    plain = conflict_graph(mine_segments(words), benefit)
    count = len(plain.segments)
    free = expand_candidates(plain, benefit)
    assert len(free.segments) > count + 20
    capped = expand_candidates(plain, benefit, in_all=count + 20)
    assert len(capped.segments) == count + 20
    assert set(plain.segments) <= set(capped.segments)
    heaviest_one = plain.segments[max(range(count), key=plain.weights.__getitem__)]
    assert sum(one.steps == heaviest_one.steps for one in capped.segments) > 1
    assert set(expand_candidates(plain, benefit, in_all=1).segments) == set(plain.segments)
    few_steps = sum(one.size for one in plain.segments) + 30
    assert sum(one.size for one in expand_candidates(plain, benefit, steps=few_steps).segments) <= few_steps


def test_of_too_many_steps_the_heaviest_segments_are_taken_and_the_bound_holds() -> None:
    words = pieces(30, 8, 20)
    benefit = PerStartBenefit(words, lambda letter: 1.0 + int(str(letter)) % 5)
    mined = mine_segments(words)
    whole = conflict_graph(mined, benefit)
    part = conflict_graph(mined, benefit, steps=200)
    assert sum(one.size for one in part.segments) <= 200
    assert min(part.weights) >= max(set(whole.weights) - set(part.weights))
    assert part.lacking == pytest.approx(sum(whole.weights) - sum(part.weights))
    found = chosen(len(mined), part).found
    assert found.weight <= find_plan(whole).weight <= found.bound
    assert not found.is_best


def test_a_bound_by_queries_is_near_the_best_plan() -> None:
    """In each query one of two segments can be shared: weight is moved until no query takes what another gives up."""
    one = SharedSegment(("A", "B"), ((0, 0), (1, 0), (2, 0)))
    other = SharedSegment(("B", "C"), ((1, 1), (2, 1)))
    third = SharedSegment(("B", "D"), ((0, 1), (3, 0)))
    graph = graph_of([(one, 30.0), (other, 16.0), (third, 8.0)])
    least = graph.weight(greedy(graph))
    assert least == 30
    assert bound_plans(graph, least, rounds=1).weight > 31
    near = bound_plans(graph, least)
    assert 30 <= near.weight < 30.5
    assert near.out == bits([1, 2])


def test_every_part_of_the_search_ends_within_its_budget_with_something_valid() -> None:
    words = pieces(60, 10, 30)
    benefit = PerStartBenefit(words, lambda letter: 1.0 + int(str(letter)) % 5)
    over = SearchBudget(0)
    assert all(one.is_over for one in (over, over.part(0.5), over.at_most(9)))
    mined = mine_segments(words, over)
    assert 0 < len(mined) < len(mine_segments(words))
    graph = conflict_graph(mine_segments(words), benefit, over)
    assert 0 < len(graph.segments) < len(conflict_graph(mine_segments(words), benefit).segments)
    assert graph.lacking == float("inf")
    whole = conflict_graph(mine_segments(words), benefit)
    assert expand_candidates(whole, benefit, over).segments == whole.segments
    assert whole.is_valid(greedy(whole, over))
    reduction = reduce_graph(whole, 0.0, over)
    assert (reduction.left | reduction.certain, reduction.pruned) == (whole.all, 0)
    found = find_plan(whole, budget=over)
    assert whole.is_valid(found.plan)
    assert found.weight <= find_plan(whole, budget=SearchBudget(1e5)).weight <= found.bound


def test_a_part_of_a_budget_is_spent_on_the_whole() -> None:
    whole = SearchBudget(100)
    part = whole.part(0.4)
    part.spend(30)
    assert (part.left, whole.left, part.is_over) == (10, 70, False)
    part.spend(20)
    assert (part.is_over, whole.left, whole.spent) == (True, 50, 50)


def test_the_whole_choice_keeps_to_its_steps_and_is_the_same_every_time() -> None:
    words = pieces(400, 12, 60)

    def benefit(segment: SharedSegment) -> float:
        return float(segment.size)

    assert len(mine_segments(words)) > 500
    found = choose_plan(words, benefit, 5_000)
    assert found == choose_plan(words, benefit, 5_000)
    assert found.graph.is_valid(found.found.plan)
    assert found.found.plan
    assert found.found.bound == float("inf")
    assert not found.found.is_best


def test_without_steps_there_is_a_plan_and_a_bound() -> None:
    words = [tuple(f"{(number * 7 + place * place) % 9}" for place in range(9)) for number in range(40)]
    benefit = PerStartBenefit(words, lambda letter: 1.0 + int(str(letter)))
    hurried, best = choose_plan(words, benefit, 0), choose_plan(words, benefit, 1e7)
    assert hurried.graph.is_valid(hurried.found.plan)
    assert hurried.graph.weight(hurried.greedy) <= hurried.found.weight <= best.found.weight <= hurried.found.bound
