"""Live streams of queries whose events are kept apart by what their conditions make equal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.property.compare import rows_of
from tests.unit.streaming.live_streams import ARROW, SCHEMA, Row, events, stream, streaming_query

import trendloom as tl
from trendloom.engines.spark.streaming.checkpoint import write_manifest
from trendloom.errors import OptionError, StateError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.runtime.planning import plan_query
from trendloom.streaming.replay import Replay
from trendloom.streaming.streaming_query import STATE_WITHOUT, as_before_rules, streaming_query_of

ROWS: list[Row] = [("ABCAB"[t % 5], t, t * 7 % 4, t % 10) for t in range(60)]
PAIRS = "RETURN a.time AS begin, b.time AS end PATTERN SEQ(A a, NOT (C c: c.k = b.k), B b) WHERE a.k = b.k WITHIN 9"
COUNTED = "RETURN COUNT(*), SUM(A.x), MAX(B.x) PATTERN SEQ(A, B) WHERE A.k = B.k WITHIN 10 SLIDE 5"


@pytest.mark.parametrize("query", [PAIRS, COUNTED])
@pytest.mark.parametrize("buckets", [1, 3])
def test_keys_are_spread_over_buckets(query: str, buckets: int) -> None:
    live = stream(query, buckets=buckets)
    assert live.streaming_query.physical.plan.split == ("k",)
    found = [row for at in range(0, 60, 9) for row in live.batch(events(ROWS[at : at + 9])).to_pylist()]
    found += live.flush().to_pylist()
    assert rows_of(found) == rows_of(tl.run(query, events(ROWS), engine="reference"))


def test_early_rows_keep_events_together() -> None:
    assert not streaming_query(COUNTED, early=True).physical.plan.split


COUNTED_ROUNDS = "RETURN COUNT(*) PATTERN SEQ(A a, B+ b[]) WHERE count(b[]) >= 2 WITHIN 10 SLIDE 5"


@pytest.mark.parametrize("query", [PAIRS, COUNTED, COUNTED_ROUNDS])
def test_a_checkpoint_without_the_rule_goes_on_without_it(tmp_path: Path, query: str) -> None:
    made = plan_query(bind(parse_query(query), SCHEMA), without=STATE_WITHOUT)
    old, new = streaming_query_of(made, ARROW, "exact"), streaming_query(query)
    assert old.fingerprint != new.fingerprint
    assert as_before_rules(new).fingerprint == old.fingerprint
    write_manifest(str(tmp_path), (old,), 4)
    noted = (tmp_path / "trendloom.json").read_text()
    (going_on,) = write_manifest(str(tmp_path), (new,), 4)
    assert going_on.fingerprint == old.fingerprint
    assert going_on.physical.plan.split == ()
    assert json.loads((tmp_path / "trendloom.json").read_text()) == json.loads(noted)
    with pytest.raises(OptionError, match="has changed since the checkpoint was made"):
        write_manifest(str(tmp_path), (streaming_query(query.replace("WITHIN ", "WITHIN 1")),), 4)


def test_such_a_state_is_not_taken_for_one_of_the_rule() -> None:
    made = plan_query(bind(parse_query(PAIRS), SCHEMA), without=(split_by_equality,))
    live = Replay(streaming_query_of(made, ARROW, "exact"), 0)
    live.batch(events(ROWS[:30]))
    with pytest.raises(StateError, match="kept its events otherwise") as refused:
        replace(live, streaming_query=streaming_query(PAIRS)).batch(events(ROWS[30:]))
    assert "checkpoint" in str(refused.value)


def test_state_of_the_rule_goes_on_with_it() -> None:
    live = stream(PAIRS)
    found = live.batch(events(ROWS[:30])).to_pylist()
    again = replace(live, streaming_query=streaming_query(PAIRS))
    found += again.batch(events(ROWS[30:])).to_pylist() + again.flush().to_pylist()
    assert rows_of(found) == rows_of(tl.run(PAIRS, events(ROWS), engine="reference"))
