"""What a checkpoint remembers of a workload: which changes fit, and which are refused before anything is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.engines.live_streams import flow

from trendloom.engines.live.flow import Flow
from trendloom.engines.spark.live.manifest import NAME, agreed, travel_together
from trendloom.errors import OptionError, RunError

PAIRS = "RETURN a.x PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
COUNTS = "RETURN k, COUNT(*) PATTERN SEQ(A, B) WHERE [k] GROUP BY k WITHIN 10"


def named(name: str, query: str) -> Flow:
    return replace(flow(query), name=name)


def test_queries_come_and_go(tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    first = agreed(place, (named("p", PAIRS), named("c", COUNTS)), 8)
    assert [one.generation for one in first] == [0, 0]
    assert [one.generation for one in agreed(place, (named("p", PAIRS),), 8)] == [0]
    back = agreed(place, (named("p", PAIRS), named("c", COUNTS), named("new", COUNTS)), 8)
    assert [one.generation for one in back] == [0, 1, 0]
    assert [one.generation for one in agreed(place, (named("c", COUNTS),), 8)] == [1]


def test_a_query_that_was_away_may_have_changed(tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    agreed(place, (named("p", PAIRS), named("c", COUNTS)), 8)
    agreed(place, (named("p", PAIRS),), 8)
    assert agreed(place, (named("c", PAIRS),), 8)[0].generation == 1


def test_a_changed_query_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    agreed(str(tmp_path), (named("p", PAIRS),), 8)
    before = (tmp_path / NAME).read_bytes()
    for changed in ("WITHIN 20", "WITHIN 10 SLIDE 5"):
        with pytest.raises(OptionError, match="query 'p' has changed") as error:
            agreed(str(tmp_path), (named("p", PAIRS.replace("WITHIN 10", changed)),), 8)
        assert "another name" in str(error.value.hint)
    assert (tmp_path / NAME).read_bytes() == before
    agreed(str(tmp_path), (named("p", PAIRS.replace("RETURN a.x", "RETURN a.x + 1 AS y")),), 8)


def test_the_number_of_buckets_belongs_to_the_checkpoint(tmp_path: Path) -> None:
    agreed(str(tmp_path), (named("p", PAIRS),), 8)
    with pytest.raises(OptionError, match="made with 8 buckets, not 4"):
        agreed(str(tmp_path), (named("p", PAIRS),), 4)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(OptionError, match="not one of Trendloom's"):
        agreed(str(tmp_path), (named("p", PAIRS),), 8)


def test_a_garbled_manifest_is_told(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        agreed(str(tmp_path), (named("p", PAIRS),), 8)


def test_queries_of_a_new_checkpoint_travel_together_and_those_of_an_old_one_as_ever(tmp_path: Path) -> None:
    new, old = str(tmp_path / "new"), tmp_path / "old"
    agreed(new, (named("p", PAIRS),), 8)
    assert travel_together(new)
    agreed(str(old), (named("p", PAIRS),), 8)
    told = json.loads((old / NAME).read_text())
    del told["together"]  # as earlier versions wrote it
    (old / NAME).write_text(json.dumps(told))
    for _ in range(2):
        agreed(str(old), (named("p", PAIRS), named("c", COUNTS)), 8)
        assert not travel_together(str(old))
