"""From matches to rows: windows, groups, values, aggregates, complete and collapsed trends, ranking, order, limits."""

from __future__ import annotations

import pytest

from trendloom.errors import DataError
from trendloom.reference import stream as budget


class TestStreams:
    def test_null_and_nan_are_in_no_partition(self, ask):
        found = ask("PATTERN A WHERE [k]", "a1(k=1.0) a2 a3(k=nan) a4(k=-0.0) a5(k=0.0)")
        assert found.trends == ["a4", "a5", "a1"]
        assert [row.partition for row in found.rows] == [(0.0,), (0.0,), (1.0,)]

    def test_partitions_are_evaluated_alone(self, ask):
        assert ask("PATTERN SEQ(A, B) WHERE [k]", "a1(k=1) b2(k=2) b3(k=1)").trends == ["a1 b3"]

    def test_group_by_collects_partitions(self, ask):
        query = "RETURN g, COUNT(*) PATTERN SEQ(A, B) WHERE [u] GROUP BY g"
        stream = "a1(u=1,g='p') b2(u=1,g='p') a3(u=2,g='p') b4(u=2,g='p') a5(u=1,g='q') b6(u=1,g='q') b7(u=1)"
        found = ask(query, stream)
        assert [(row.partition, row.values) for row in found.rows] == [(("p",), (2,)), (("q",), (1,))]


class TestWindows:
    def test_aligned_to_zero_and_negative(self, ask):
        found = ask("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 4 SLIDE 1", "a1 b2 a3 b4 b5")
        assert [(row.window, row.values) for row in found.rows] == [
            ((-1, 3), (1,)), ((0, 4), (1,)), ((1, 5), (3,)), ((2, 6), (2,)), ((3, 7), (2,)),
        ]  # fmt: skip

    def test_tumbling_for_aggregates(self, ask):
        found = ask("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 5", "a1 b4 a6 b8 a9 b10")
        assert [(row.window, row.values) for row in found.rows] == [
            ((0, 5), (1,)), ((5, 10), (1,)),
        ]  # fmt: skip

    def test_bound_for_rows(self, ask):
        found = ask("PATTERN SEQ(A, B) WITHIN 3", "a1 b3 b4")
        assert found.trends == ["a1 b3"]
        assert found.rows[0].window is None

    def test_gaps_between_windows(self, ask):
        assert ask("PATTERN A WITHIN 2 SLIDE 5", "a1 a3 a5 a6 a7").trends == ["a1", "a5", "a6"]

    def test_next_is_decided_in_the_window(self, ask):
        found = ask("PATTERN SEQ(A, B) SEMANTICS skip-till-next-match WITHIN 4 SLIDE 2", "a1 b2 b5")
        assert [(row.window, trend) for row, trend in zip(found.rows, found.trends, strict=True)] == [((0, 4), "a1 b2")]


class TestValues:
    def test_one_row_per_match(self, ask):
        query = "RETURN a.x, b.x AS bx, count(c[]) AS n, max(c[].x), duration(c) AS d PATTERN SEQ(A a, B b?, C c*)"
        found = ask(query, "a1(x=1) c2(x=3) c4(x=2)")
        assert found.values == [
            (1, None, 0, None, None), (1, None, 1, 3, 0), (1, None, 2, 3, 2), (1, None, 1, 2, 0),
        ]  # fmt: skip

    def test_aggregates_skip_nulls(self, ask):
        query = "RETURN count(b[]) AS n, count(b[].x) AS m, avg(b[].x) AS a, b[first].x AS f PATTERN SEQ(B b{3})"
        assert ask(query, "b1 b2(x=1) b3(x=2)").values == [(3, 2, 1.5, None)]

    def test_partition_attributes(self, ask):
        query = "RETURN k, k + 1 AS next PATTERN A WHERE [k]"
        found = ask(query, "a1(k=3)")
        assert found.values == [(4,)]
        assert found.rows[0].partition == (3,)


class TestTotals:
    STREAM = "a1(x=5) b2 a3(x=6) a4(x=4) b7"

    def test_over_all_occurrences(self, ask):
        query = "RETURN COUNT(*), COUNT(A), MIN(A.x), MAX(A.x), SUM(A.x), AVG(A.x) PATTERN (SEQ(A+, B))+"
        assert ask(query, self.STREAM).values == [(11, 20, 4, 6, 100, 5.0)]

    def test_a_type_means_all_its_variables(self, ask):
        query = "RETURN COUNT(A), COUNT(a), SUM(A.x) PATTERN SEQ(A a, A b)"
        assert ask(query, "a1(x=1) a2(x=2)").values == [(2, 1, 3)]

    def test_nothing_to_aggregate(self, ask):
        query = "RETURN COUNT(b), MIN(b.x), SUM(b.x), AVG(b.x) PATTERN SEQ(A a, B b?)"
        assert ask(query, "a1(x=1)").values == [(0, None, None, None)]
        assert ask(query, "b1(x=1)").values == []

    def test_large_sums_are_exact(self, ask):
        big = 2**62
        assert ask("RETURN SUM(A.x) PATTERN A+", f"a1(x={big}) a2(x={big}) a3(x=1)").value == 4 * (2 * big + 1)

    def test_arithmetic_and_having(self, ask):
        query = "RETURN g, SUM(A.x) / COUNT(*) AS m PATTERN A GROUP BY g HAVING COUNT(*) > 1 AND SUM(A.x) > 2"
        found = ask(query, "a1(x=1,g=1) a2(x=2,g=1) a3(x=9,g=2) a4(g=3) a5(g=3)")
        assert [(row.partition, row.values) for row in found.rows] == [((1,), (1.5,))]


class TestComplete:
    def test_no_match_contains_another(self, ask):
        assert ask("RETURN COMPLETE TRENDS PATTERN A+", "a1 a2 a3").trends == ["a1 a2 a3"]
        query = "RETURN COMPLETE TRENDS PATTERN C c+ WHERE c.t = NEXT(c).s"
        stream = "c1(s='A',t='B') c2(s='B',t='C') c3(s='B',t='D') c4(s='D',t='E')"
        assert ask(query, stream).trends == ["c1 c2", "c1 c3 c4"]

    def test_however_many_events_are_missing(self, ask):
        assert ask("RETURN COMPLETE TRENDS PATTERN OR(A, SEQ(A, B, C))", "a1 b2 c3 a4").trends == ["a1 b2 c3", "a4"]

    def test_equal_sets_both_stay(self, ask):
        assert ask("RETURN COMPLETE TRENDS PATTERN SEQ(A+, A+)", "a1 a2 a3").trends == ["a1 a2 a3", "a1 a2 a3"]


def test_collapsed(ask):
    found = ask("RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B b+, C c)", "a1 b2 b3 c4 c5")
    assert found.trends == ["a1 b2 b3 c4", "a1 b2 b3 c5"]
    assert found.variables[0] == "a b b c"
    assert [row.matches for row in found.rows] == [3, 3]


class TestRank:
    QUERY = "PATTERN SEQ(A a, B b) RANK BY a.x + b.x {} LIMIT {}"
    STREAM = "a1(x=1) a2(x=3) b3(x=2) b4(x=0) b5"

    def test_best_first(self, ask):
        found = ask(self.QUERY.format("DESC", 3), self.STREAM)
        assert [row.score for row in found.rows] == [5, 3, 3]
        assert found.trends == ["a2 b3", "a1 b3", "a2 b4"]
        assert ask(self.QUERY.format("", 1), self.STREAM).trends == ["a1 b4"]

    def test_null_scores_last(self, ask):
        for order in ("ASC", "DESC"):
            assert ask(self.QUERY.format(order, 9), self.STREAM).trends[-2:] == ["a1 b5", "a2 b5"]

    def test_ties_by_times_then_values(self, ask):
        found = ask("PATTERN SEQ(A a, B b) RANK BY b.x LIMIT 9", "a1(y=2) a1p(y=1) b3(x=1)")
        assert found.trends == ["a1 b3", "a1p b3"]  # the column id comes first and differs

    def test_merge(self, ask):
        query = "PATTERN AND(A a, B b) RANK BY MERGE({}, a.x, b.x) DESC LIMIT 1"
        scores = [ask(query.format(name), "a1(x=1) b2(x=4)").rows[0].score for name in ("avg", "min", "max", "sum")]
        assert scores == [2.5, 1, 4, 5]

    def test_per_window_and_partition(self, ask):
        found = ask(
            "PATTERN A a WHERE [k] WITHIN 5 SLIDE 5 RANK BY a.x LIMIT 1",
            "a1(k=1,x=2) a2(k=1,x=1) a3(k=2,x=3) a6(k=1,x=9)",
        )
        assert found.trends == ["a2", "a3", "a6"]

    def test_values_of_ranked_matches(self, ask):
        found = ask("RETURN a.x AS v PATTERN A a RANK BY a.x DESC LIMIT 2", "a1(x=1) a2(x=3) a3(x=2)")
        assert found.values == [(3,), (2,)]


def test_too_much_work_is_refused(ask, monkeypatch):
    monkeypatch.setattr(budget, "STEP_LIMIT", 1000)
    with pytest.raises(DataError, match="gave up") as refused:
        ask("PATTERN A+", " ".join(f"a{time}" for time in range(30)))
    assert "local" in str(refused.value)


def test_rows_are_ordered_by_window_group_first_and_last_event(ask):
    stream = "a1(k=2) b4(k=2) a2(k=1) b3(k=1) b3p(k=1)"
    assert ask("PATTERN SEQ(A, B) WHERE [k]", stream).trends == ["a2 b3", "a2 b3p", "a1 b4"]
