"""Steps of a live stream: when rows come, what is kept, what is late, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.unit.streaming.live_streams import ARROW, Row, events, stream, streaming_query

import trendloom as tl
from trendloom import optimizer as optimize
from trendloom.errors import PlanError, RunError
from trendloom.optimizer.decorrelate_negations import decorrelate_negations
from trendloom.streaming import state as chunks
from trendloom.streaming.state import ChunkIndex, Holds, Kept, pack_index, unpack_index
from trendloom.streaming.step import QueryStep

PAIRS = "RETURN a.x, b.x AS y PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
COUNTS = "RETURN k, COUNT(*) AS n PATTERN SEQ(A, B) WHERE [k] GROUP BY k WITHIN 10"
RUNS = "RETURN a.x, c.x AS y PATTERN SEQ(A a, B+, C c) SEMANTICS skip-till-next-match WHERE [k] WITHIN 100"


def rows(table: pa.Table) -> list[dict[str, object]]:
    return table.to_pylist()


# ------------------------------------------------------------------------------------------ when rows come


def test_a_match_comes_when_the_watermark_has_passed_its_last_event() -> None:
    live = stream(PAIRS)
    assert not len(live.batch(events([("A", 1, 1, 10), ("B", 2, 1, 20)])))  # the watermark is 2 now, not beyond B
    assert not len(live.batch(events([("A", 2, 2, 0)])))
    assert not len(live.batch(events([("A", 3, 2, 0)])))
    assert rows(live.batch(events([]))) == [{"k": 1, "a.x": 10, "y": 20}]


def test_a_trailing_not_waits_for_what_could_still_come() -> None:
    live = stream("RETURN a.x PATTERN SEQ(A a, NOT B) WHERE [k] WITHIN 10")
    live.batch(events([("A", 1, 1, 7), ("A", 1, 2, 8), ("B", 9, 2, 0)]))
    live.batch(events([("C", 10, 1, 0)]))
    assert not len(live.batch(events([("C", 11, 1, 0)])))  # the watermark is 10: at 10 a B would still matter
    assert rows(live.batch(events([]))) == [{"k": 1, "a.x": 7}]


def test_windows_of_quiet_keys_end() -> None:
    live = stream(COUNTS)
    live.batch(events([("A", 1, 1, 0), ("B", 2, 1, 0)]))
    live.batch(events([("A", 30, 2, 0)]))
    assert [row["n"] for row in rows(live.batch(events([])))] == [1]


def test_nothing_is_left_when_all_windows_have_ended() -> None:
    for query in (PAIRS, COUNTS, RUNS):
        live = stream(query)
        live.batch(events([("A", 1, 1, 0), ("B", 2, 1, 0), ("A", 3, 2, 0)]))
        assert live.kept > 0
        live.batch(events([("C", 500, 9, 0)]))
        live.batch(events([("C", 1000, 9, 0)]))
        live.flush()
        assert live.kept == 0
        assert all(memory.head is None and memory.wakes is None for memory in live.memories.values())


# ---------------------------------------------------------------------------------------------- early rows


def test_early_rows_of_windows_that_events_arrived_for() -> None:
    live = stream("RETURN k, COUNT(*) AS n PATTERN SEQ(A, B) WHERE [k] GROUP BY k WITHIN 10", early=True, delay=5)
    assert rows(live.batch(events([("A", 1, 1, 0), ("B", 2, 1, 0), ("A", 3, 2, 0)])))[0]["n"] == 1
    assert rows(live.batch(events([("A", 4, 2, 0)]))) == []  # still no match for key 2, nothing new for key 1
    assert [(row["k"], row["n"]) for row in rows(live.batch(events([("B", 6, 2, 0)])))] == [(2, 2)]
    assert sorted((row["k"], row["n"]) for row in rows(live.flush())) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("grain", ["", "AND A.x <= NEXT(A).x", "AND sum(a[].x) > 0"])
def test_early_rows_end_as_the_final_ones(grain: str) -> None:
    query = f"RETURN k, COUNT(*) AS n, SUM(A.x) AS s PATTERN A+ a[] WHERE [k] {grain} GROUP BY k WITHIN 6 SLIDE 3"
    query = query.replace("NEXT(A)", "NEXT(a)").replace("AND A.x", "AND a.x")
    batches = [[("A", t, t % 2, t + 1), ("A", t + 2, 1, 3)] for t in range(0, 20, 2)]
    live, last = stream(query, early=True, delay=3), {}
    for batch in batches:
        for row in rows(live.batch(events(batch))):
            last[row["k"], row["window_start"]] = row
    expected = tl.run(query, events([row for batch in batches for row in batch]), engine="local")
    assert last == {(row["k"], row["window_start"]): row for row in rows(expected)}


@pytest.mark.parametrize(
    "query",
    [
        PAIRS,
        RUNS,
        "RETURN k, COUNT(*) PATTERN SEQ(A, NOT C, B) WHERE [k] GROUP BY k WITHIN 10",
        "RETURN k, COUNT(*) PATTERN A+ SEMANTICS contiguous WHERE [k] GROUP BY k WITHIN 10",
        "RETURN k, COUNT(*) PATTERN A+ WHERE [k] GROUP BY k WITHIN 10 HAVING COUNT(*) < 3",
        "RETURN COUNT(*) PATTERN A+ WHERE [k] WITHIN 10",
    ],
)
def test_rows_that_might_be_taken_back_do_not_come_early(query: str) -> None:
    with pytest.raises(PlanError, match="cannot be given out early"):
        streaming_query(query, early=True)


def test_a_query_without_an_end_is_refused() -> None:
    with pytest.raises(PlanError, match="without WITHIN"):
        streaming_query("PATTERN SEQ(A, B)")


# ------------------------------------------------------------------------------------------------ lateness


def test_late_events_and_events_without_a_time_are_set_apart() -> None:
    live = stream(PAIRS, delay=2)
    live.batch(events([("A", 10, 1, 0)]))
    live.batch(events([("B", 7, 1, 1), ("B", 8, 1, 2), ("B", None, 1, 3)]))
    assert sorted(pa.concat_tables(live.late)["x"].to_pylist()) == [1, 3]


def test_a_late_event_keeps_columns_that_the_query_does_not_need() -> None:
    wide = events([("A", 1, 1, 0)]).append_column("note", pa.array(["hello"]))
    step = QueryStep(streaming_query(PAIRS), Kept(), 5)
    assert list(step.rows(wide)) == []
    assert step.late is not None
    assert step.late["note"].to_pylist() == ["hello"]


# ---------------------------------------------------------------------------------------------------- state


def test_state_does_not_grow_with_a_long_window() -> None:
    """Of runs only those that may go on are kept; of events that are matrices, one piece per key and pane."""
    for query, most in ((RUNS, 40), ("RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 100000 SLIDE 50000", 40)):
        live = stream(query.replace("WITHIN 100", "WITHIN 100000") if query is RUNS else query, buckets=1)
        for begin in range(0, 3000, 30):
            live.batch(events([("ABC"[t % 3], t, 1, t) for t in range(begin, begin + 30)]))
        index = unpack_index(live.memories[0].index() or b"")
        assert sum(chunk.rows for chunk in index.of(Holds.EVENTS)) <= 30 + most
        assert len(index.chunks) <= 2 * chunks.MOST_CHUNKS


def test_a_batch_writes_only_what_is_new() -> None:
    live = stream("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 1000", buckets=1)
    written: list[int] = []
    memory = live.memories.setdefault(0, Kept())
    set_chunk = memory.set_chunk

    def noting(number: int, content: bytes) -> None:
        written.append(number)
        set_chunk(number, content)

    memory.set_chunk = noting  # type: ignore[method-assign]
    for begin in range(0, 10 * 7, 7):
        live.batch(events([("AC"[t % 2], t, 1, t) for t in range(begin, begin + 7)]))
    assert written == list(range(10))


def test_many_small_chunks_are_joined() -> None:
    live = stream("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 1000", buckets=1)
    for time in range(200):
        live.batch(events([("A", time, 1, time)]))
    assert len(live.memories[0].chunks) <= chunks.MOST_CHUNKS + 1
    live.batch(events([("B", 200, 1, 0), ("C", 201, 1, 0)]))
    assert len(live.batch(events([]))) == 200


# ---------------------------------------------------------------------------------------- other state, other query


def stored(query: str, batch: list[Row]) -> Kept:
    memory = Kept()
    list(QueryStep(streaming_query(query), memory, None).rows(events(batch)))
    return memory


def test_another_query_does_not_touch_the_state() -> None:
    memory = stored(COUNTS, [("A", 1, 1, 0), ("B", 2, 1, 0)])
    before = (memory.head, dict(memory.chunks))
    other = COUNTS.replace("WITHIN 10", "WITHIN 20")
    with pytest.raises(RunError, match="has changed") as error:
        QueryStep(streaming_query(other), memory, 100)
    assert "another name" in str(error.value.hint)
    assert (memory.head, memory.chunks) == before


def test_another_number_of_buckets_is_refused() -> None:
    memory = stored(COUNTS, [("A", 1, 1, 0)])
    with pytest.raises(RunError, match="made with 1 buckets, not 3"):
        QueryStep(streaming_query(COUNTS), memory, 100, buckets=3)


def test_a_query_that_was_away_starts_afresh() -> None:
    memory = stored(COUNTS, [("A", 1, 1, 0)])
    again = replace(streaming_query(COUNTS), generation=1)
    assert list(QueryStep(again, memory, 1).rows(events([("B", 2, 1, 0)]))) == []
    assert list(QueryStep(again, memory, 100).rows()) == []  # the A came before it went


def test_a_flood_of_matches_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trendloom.streaming.streaming_query.MOST_ENTRIES", 1000)
    live = stream("PATTERN A+ WITHIN 1000")
    live.batch(events([("A", time, 1, 0) for time in range(30)]))
    with pytest.raises(RunError, match="more than 1,000 events in the matches of one step"):
        live.batch(events([("A", 100, 1, 0)]))


def test_another_having_goes_on_with_the_state() -> None:
    memory = stored(COUNTS, [("A", 1, 1, 0), ("B", 2, 1, 0), ("A", 1, 2, 0)])
    (found,) = QueryStep(
        streaming_query(COUNTS.replace("WITHIN 10", "HAVING COUNT(*) > 0 WITHIN 10")), memory, 100
    ).rows()
    assert found.to_pylist() == [{"k": 1, "window_start": 0, "window_end": 10, "n": 1}]


@pytest.mark.parametrize("semantics", ["skip-till-any-match", "skip-till-next-match"])
def test_aggregates_go_on_with_events_that_another_algorithm_kept(semantics: str) -> None:
    """Without the rule the matches around a NOT are found one by one; what is kept of a window is the same."""
    query = f"""RETURN k, COUNT(*) AS n PATTERN (SEQ(A a, NOT (C c: c.x = a.x), B b))+
        SEMANTICS {semantics} WHERE [k] GROUP BY k WITHIN 10"""
    kept = [("A", 1, 1, 1), ("C", 2, 1, 2), ("B", 3, 1, 0), ("A", 4, 1, 2), ("C", 5, 1, 2), ("B", 6, 1, 0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimize, "RULES", tuple(rule for rule in optimize.RULES if rule is not decorrelate_negations))
        memory, before = stored(query, kept), streaming_query(query)
    now = streaming_query(query)
    assert (before.kernel.family, now.kernel.family) == ("DetectionKernel", "AggregationKernel")
    assert before.fingerprint != now.fingerprint
    (found,) = QueryStep(now, memory, 100).rows()
    expected = tl.run(query, events(kept), engine="reference")
    assert [row["n"] for row in found.to_pylist()] == [row["n"] for row in expected.to_pylist()]


def test_a_newer_format_is_refused() -> None:
    content = pack_index(ChunkIndex("", 1)).replace(b'"format": 1', b'"format": 99')
    with pytest.raises(RunError, match="format 99"):
        unpack_index(content)


def test_an_older_format_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    old = pack_index(ChunkIndex("f", 1, before=5))
    monkeypatch.setattr(chunks, "FORMAT", 3)
    upgrades = {1: lambda told: told | {"fingerprint": "g"}, 2: lambda told: told | {"before": told["before"] + 1}}
    monkeypatch.setattr(chunks, "UPGRADES", upgrades)
    assert unpack_index(old) == replace(ChunkIndex("g", 1), before=6)


def test_another_version_of_a_kernel_is_refused() -> None:
    memory = stored(COUNTS, [("A", 1, 1, 0)])
    memory.set_index(pack_index(replace(unpack_index(memory.index() or b""), kernel=99)))
    with pytest.raises(RunError, match="version 99 of its kernel"):
        QueryStep(streaming_query(COUNTS), memory, 100)


def test_the_columns_of_the_events_belong_to_the_state() -> None:
    assert streaming_query(COUNTS).schema.names == [name for name in ARROW.names if name != "x"]
    assert (
        streaming_query(COUNTS).fingerprint
        != streaming_query(COUNTS.replace("COUNT(*) AS n", "SUM(A.x) AS n")).fingerprint
    )
    assert streaming_query(COUNTS).fingerprint == streaming_query(COUNTS.replace(" AS n", " + 1 AS m")).fingerprint
