"""The best matches by the definitions: scores, NULLs, ties, boards of all partitions, MERGE, windows of operands."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import trendloom as tl


def ranks(found) -> list[tuple[int | None, object]]:
    return [(row.rank, row.score) for row in found.rows]


class TestScores:
    def test_kleene_parts_skip_nulls(self, ask):
        query = "PATTERN SEQ(A a, B+ b[]) RANK BY a.x + sum(b[].x) DESC LIMIT 9"
        found = ask(query, "a1(x=1) b2 b3(x=5)")
        assert list(zip(found.trends, ranks(found), strict=True)) == [
            ("a1 b2 b3", (1, 6)), ("a1 b3", (2, 6)), ("a1 b2", (3, None))
        ]  # fmt: skip

    def test_a_count_of_nothing_is_zero(self, ask):
        found = ask("PATTERN SEQ(A a, B* b[]) RANK BY a.x + count(b[]) LIMIT 9", "a1(x=1) b2 b3")
        assert sorted(row.score for row in found.rows) == [1, 2, 2, 3]
        assert [row.score for row in ask("PATTERN SEQ(A a, B* b[]) RANK BY count(b[]) LIMIT 1", "a1").rows] == [0]

    def test_a_part_that_is_not_bound_is_null(self, ask):
        found = ask("PATTERN SEQ(A a, B b?) RANK BY a.x + b.x LIMIT 9", "a1(x=1) b2(x=1)")
        assert ranks(found) == [(1, 2), (2, None)]

    def test_doubles_are_added_event_by_event(self, ask):
        stream = "a1(y=1e16) b2(y=1.0) b3(y=1.0) c4(y=-1e16)"
        found = ask("PATTERN SEQ(A a, B+ b[], C c) RANK BY c.y + sum(b[].y) + a.y DESC LIMIT 1", stream)
        assert ranks(found) == [(1, 1e16 + 1.0 + 1.0 - 1e16)]

    def test_products_least_and_greatest(self, ask):
        stream = "a1(x=2) b2(x=3) b3(x=4) c4(x=5)"
        pattern = "PATTERN SEQ(A a, B+ b[], C c) WHERE a.x >= 0 AND c.x >= 0 RANK BY {} DESC LIMIT 1"
        wanted = {"a.x * c.x": 10, "min(a.x, min(b[].x))": 2, "max(max(b[].x), c.x, 1)": 5, "sqrt(a.x * c.x)": 10**0.5}
        for preference, score in wanted.items():
            assert ask(pattern.format(preference), stream).rows[0].score == score, preference

    def test_overflow_is_null_and_last(self, ask):
        found = ask("PATTERN SEQ(A a, B b) RANK BY a.y + b.y DESC LIMIT 9", "a1(y=1.7e308) b2(y=1.7e308) b3(y=0.0)")
        assert [row.score for row in found.rows] == [1.7e308, None]

    def test_rows_have_ranks_in_both_directions(self, ask):
        stream = "a1(x=1) a2(x=3) a3(x=2)"
        assert ranks(ask("PATTERN A a RANK BY a.x DESC LIMIT 2", stream)) == [(1, 3), (2, 2)]
        assert ranks(ask("RETURN a.x PATTERN A a RANK BY a.x LIMIT 2", stream)) == [(1, 1), (2, 2)]


class TestOverall:
    STREAM = "a1(k=1,x=1) a2(k=2,x=3) a3(k=1,x=3) a4(k=3) a12(k=2,x=0)"

    def test_one_board_for_a_window(self, ask):
        found = ask("PATTERN A a WHERE [k] WITHIN 10 SLIDE 10 RANK BY a.x DESC LIMIT 3 OVERALL", self.STREAM)
        assert found.trends == ["a2", "a3", "a1", "a12"]
        assert [row.partition for row in found.rows] == [(2,), (1,), (1,), (2,)]
        assert [row.rank for row in found.rows] == [1, 2, 3, 1]

    def test_without_it_every_partition_has_its_own(self, ask):
        found = ask("PATTERN A a WHERE [k] RANK BY a.x DESC LIMIT 1", self.STREAM)
        assert found.trends == ["a3", "a2", "a4"]
        assert [row.rank for row in found.rows] == [1, 1, 1]


class TestMerge:
    QUERY = "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) RANK BY MERGE({}, a.x + b.x, c.x + d.x) DESC LIMIT 9"

    def test_a_branch_not_taken_is_left_out(self, ask):
        stream = "a1(x=1) b2(x=4) c3(x=2) d4(x=1)"
        for function in ("avg", "min", "max", "sum"):
            assert [row.score for row in ask(self.QUERY.format(function), stream).rows] == [5, 3]

    def test_any_other_null_makes_the_score_null(self, ask):
        found = ask("PATTERN AND(A a, B b) RANK BY MERGE(max, a.x, b.x) DESC LIMIT 9", "a1(x=1) b2(x=2) b3")
        assert [row.score for row in found.rows] == [2, None]

    def test_all_left_out_is_null(self, ask):
        found = ask("PATTERN AND(A a, OR(SEQ(B b), C c)) RANK BY MERGE(sum, b.x, b.x) LIMIT 9", "a1 b2(x=1) c3(x=2)")
        assert [row.score for row in found.rows] == [2, None]

    def test_kinds_meet(self, ask):
        query = "PATTERN AND(A a, B b) RANK BY MERGE({}, a.x, b.y) LIMIT 1"
        scores = [ask(query.format(name), "a1(x=2) b2(y=0.5)").rows[0].score for name in ("avg", "min", "max", "sum")]
        assert scores == [1.25, 0.5, 2.0, 2.5]
        assert all(isinstance(score, float) for score in scores)

    def test_an_average_of_integers_is_rounded_once(self, ask):
        stream = f"a1(x={2**62}) b2(x={2**62 - 2})"
        found = ask("PATTERN AND(A a, B b) RANK BY MERGE(avg, a.x, b.x) LIMIT 1", stream)
        assert found.rows[0].score == float(2**62 - 1)


class TestOperandWindows:
    STREAM = "a1(x=1) b3(x=1) c4(x=1) a6(x=1) b7(x=1) c8(x=1)"

    def test_without_slide_they_bound_the_span(self, ask):
        query = "PATTERN AND(SEQ(A a, B b) WITHIN {}, C c) WITHIN 8 RANK BY a.x LIMIT 99"
        assert ask(query.format(2), self.STREAM).trends == ["c4 a6 b7", "a6 b7 c8"]
        assert len(ask(query.format(3), self.STREAM).trends) == 4
        assert len(ask(query.format(8), self.STREAM).trends) == 6

    def test_in_a_window_they_reach_back_from_its_end(self, ask):
        query = "PATTERN AND(SEQ(A a, B b) WITHIN {}, C c) WITHIN 10 SLIDE 10 RANK BY a.x LIMIT 99"
        assert ask(query.format(4), self.STREAM).trends == ["c4 a6 b7", "a6 b7 c8"]
        assert ask(query.format(3), self.STREAM).trends == []

    def test_the_whole_pattern(self, ask):
        assert ask("PATTERN (SEQ(A a, B b) WITHIN 3) RANK BY a.x LIMIT 9", self.STREAM).trends == ["a1 b3", "a6 b7"]

    def test_a_branch_not_taken_keeps_every_window(self, ask):
        query = "PATTERN OR(SEQ(A a, B b) WITHIN 1, C c) RANK BY MERGE(sum, a.x, c.x) LIMIT 9"
        assert ask(query, self.STREAM).trends == ["c4", "c8"]

    def test_hidden_events_count(self, ask):
        query = "PATTERN EXISTS b (SEQ(A a, B b) WITHIN {}) RANK BY a.x LIMIT 9"
        assert ask(query.format(2), self.STREAM).trends == ["a6"]
        assert ask(query.format(3), self.STREAM).trends == ["a1", "a6"]


def ranked_table(query: str, **columns) -> pa.Table:
    return tl.run(query, pa.table({"type": ["A", "B"], **columns}), engine="reference")


class TestColumns:
    def test_seconds_of_timestamps_are_exact(self):
        start = datetime.datetime(2024, 1, 1)
        times = [start, start + datetime.timedelta(microseconds=1_100_001)]
        found = ranked_table("PATTERN SEQ(A a, B b) RANK BY b.time - a.time LIMIT 1", time=pa.array(times))
        assert found["score"].to_pylist() == [1.100001]
        assert found.column_names == ["events", "rank", "score"]

    @pytest.mark.parametrize(("unit", "score"), [("s", 7), ("ms", 0.007), ("min", 420)])
    def test_seconds_of_integer_times(self, unit, score):
        table = pa.table({"type": ["A", "B"], "time": [1, 8]})
        query = "RETURN a.time PATTERN SEQ(A a, B b) RANK BY b.time - a.time LIMIT 1"
        found = tl.run(query, table, engine="reference", time_unit=unit)
        assert found.to_pylist() == [{"a.time": 1, "rank": 1, "score": score}]

    def test_types_of_scores(self):
        query = "PATTERN SEQ(A a, B b) RANK BY a.x + b.x LIMIT 1"
        for values, wanted in [
            (pa.array([1, 2]), pa.int64()),
            (pa.array([1, 2**63 - 1]), pa.decimal128(38, 0)),
            (pa.array([1.5, 2.0]), pa.float64()),
            (pa.array([None, None]), pa.int64()),
        ]:
            assert ranked_table(query, time=[1, 2], x=values).schema.field("score").type == wanted

    def test_decimals_keep_their_digits(self):
        exact = pa.array(["0.10", "0.20"]).cast(pa.decimal128(9, 2))
        found = ranked_table("PATTERN SEQ(A a, B b) RANK BY a.x + b.x + 0.005 LIMIT 1", time=[1, 2], x=exact)
        assert str(found["score"][0].as_py()) == "0.305"
