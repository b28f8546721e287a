"""What EXPLAIN says of queries that may share work, word by word: the running example of SHARON."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pyarrow as pa
import pytest
from benchmarks.baselines.sharing_plans import PerStartBenefit
from tests.unit.planner.sharing.traffic import NAMES, ROUTES, considered_traffic, traffic_graph

import trendloom as tl
from trendloom.logical.display import draw
from trendloom.planner.sharing.choose_plan import FoundPlan, choose_plan, chosen
from trendloom.planner.sharing.conflict_graph import expand_candidates, graph_of
from trendloom.planner.sharing.display import describe_sharing, show_score, show_seconds
from trendloom.planner.sharing.groups import Considered, Way


def shown(considered: Considered) -> str:
    return "\n".join(draw(describe_sharing(considered)))


def test_the_running_example() -> None:
    assert shown(considered_traffic()) == dedent("""\
        sharing  among q1, q2, q3, q4, q5 and 2 more
        ├─ segments   7 in common, 7 of which save work
        │  ├─ SEQ(Oak, Main)        saves 25: q1, q2, q3, q4
        │  ├─ SEQ(Oak, Main, West)  saves 20: q2, q4
        │  ├─ SEQ(Elm, Park)        saves 18: q6, q7
        │  ├─ SEQ(Main, West)       saves 15: q2, q4
        │  ├─ SEQ(Park, Oak, Main)  saves 12: q3, q4
        │  ├─ SEQ(Park, Oak)        saves 9: q3, q4
        │  └─ SEQ(Main, State)      saves 8: q1, q5
        ├─ conflicts  10 pairs
        │  ├─ SEQ(Oak, Main) and SEQ(Oak, Main, West)        overlap in q2, q4
        │  ├─ SEQ(Oak, Main) and SEQ(Main, West)             overlap in q2, q4
        │  ├─ SEQ(Oak, Main) and SEQ(Park, Oak, Main)        overlap in q3, q4
        │  ├─ SEQ(Oak, Main) and SEQ(Park, Oak)              overlap in q3, q4
        │  ├─ SEQ(Oak, Main) and SEQ(Main, State)            overlap in q1
        │  ├─ SEQ(Oak, Main, West) and SEQ(Main, West)       overlap in q2, q4
        │  ├─ SEQ(Oak, Main, West) and SEQ(Park, Oak, Main)  overlap in q4
        │  ├─ SEQ(Oak, Main, West) and SEQ(Park, Oak)        overlap in q4
        │  ├─ SEQ(Main, West) and SEQ(Park, Oak, Main)       overlap in q4
        │  └─ SEQ(Park, Oak, Main) and SEQ(Park, Oak)        overlap in q3, q4
        ├─ reduction  leaves 5 of 7 in question
        │  ├─ in for certain   1
        │  │  └─ SEQ(Elm, Park)  saves 18: q6, q7
        │  └─ out for certain  1
        │     └─ SEQ(Park, Oak, Main)  saves 12: q3, q4
        ├─ greedy     saves 43; at least 38.57 was certain beforehand
        ├─ plan       saves 50 (0 without sharing); no plan saves more
        │  ├─ SEQ(Elm, Park)    saves 18: q6, q7
        │  ├─ SEQ(Main, West)   saves 15: q2, q4
        │  ├─ SEQ(Park, Oak)    saves 9: q3, q4
        │  └─ SEQ(Main, State)  saves 8: q1, q5
        └─ way        one sweep, common prefixes once: least time by estimate
           ├─ each by itself                   about 900 ms
           ├─ one sweep, common prefixes once  about 250 ms, taken
           └─ shared segments                  about 300 ms""")


def test_a_plan_that_may_not_be_the_best_says_what_is_possible() -> None:
    considered = considered_traffic()
    found = FoundPlan(considered.choice.greedy, 43.0, 52.5)
    text = shown(replace(considered, choice=replace(considered.choice, found=found)))
    assert "saves 43 (0 without sharing); no plan saves more than 52.5" in text


def test_a_plan_made_in_a_hurry_says_so() -> None:
    considered = considered_traffic()
    hurried = replace(considered.choice, found=FoundPlan(considered.choice.greedy, 43.0, float("inf")))
    said = "plan       saves 43 (0 without sharing); not all segments were weighed"
    assert said in shown(replace(considered, choice=hurried))


def test_options_of_a_segment_are_counted_and_the_best_is_shown() -> None:
    graph = expand_candidates(traffic_graph(), lambda one: len(one.queries))
    text = shown(Considered(NAMES, tuple(ROUTES), chosen(7, graph), (Way("each by itself"),), 0))
    assert "7 in common, 7 of which save work; all or some of their queries can share them, in 10 ways" in text
    listed = text[: text.index("conflicts")]
    assert listed.count("SEQ(Oak, Main) ") == 1
    assert "pairs of ways to share" in text


def test_long_lists_are_cut() -> None:
    words = [tuple(f"{letter}{number % 3}" for letter in "abcdefghij") for number in range(60)]
    names = tuple(f"query{number}" for number in range(60))
    choice = choose_plan(words, PerStartBenefit(words, lambda _: 2.0))
    text = shown(Considered(names, tuple(words), choice, (Way("each by itself"),), 0))
    assert "among query0, query1, query2, query3, query4 and 55 more" in text
    assert "135 in common, 114 of which save work" in text
    assert "and 102 more" in text
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize(("mined", "said"), [(0, "none in common"), (3, "3 in common, which save nothing")])
def test_nothing_to_share(mined: int, said: str) -> None:
    considered = Considered(NAMES, tuple(ROUTES), chosen(mined, graph_of([])), (Way("each by itself"),), 0)
    assert shown(considered) == dedent(f"""\
        sharing  among q1, q2, q3, q4, q5 and 2 more
        ├─ segments  {said}
        └─ way       each by itself: times are not known without figures of the events
           └─ each by itself  not estimated, taken""")


def test_numbers_are_short() -> None:
    shown = [show_score(considered_traffic(), number) for number in (50.0, 38.571, 1234.5, 2.5e7)]
    assert shown == ["50", "38.57", "1,234.5", "2.5e+07"]
    assert show_score(replace(considered_traffic(), unit=" µs"), 3) == "3 µs"
    assert [show_seconds(number) for number in (0.0123, 2.5)] == ["12.3 ms", "2.50 s"]


def test_explain_shows_it_below_the_workload() -> None:
    table = pa.table({"time": [1, 2, 3], "type": ["A", "B", "C"]})
    counted = "QUERY p: RETURN COUNT(*) PATTERN SEQ(A, B, C) QUERY q: RETURN COUNT(*) PATTERN SEQ(A, B)"
    text = tl.explain(counted, table)
    assert "\n└─ sharing" in text
    assert "SEQ(A, B)" in text
    assert "one sweep, common prefixes once" in text
    assert "sharing" not in tl.explain(counted, table, engine="reference")


def test_conditions_on_an_event_are_shown_without_its_variable() -> None:
    table = pa.table({"time": [1, 2], "type": ["A", "B"], "x": [1, 2], "name": ["a.x", "b.x"]})
    queries = [
        f"QUERY {name}: RETURN COUNT(*) PATTERN SEQ(A {name}, B) WHERE {name}.x = 1 AND {name}.name = 'a.x'"
        for name in "ab"
    ]
    assert "SEQ(A[x = 1 AND name = 'a.x'], B)  saves" in tl.explain("\n".join(queries), table)
