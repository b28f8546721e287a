"""What several plans have in common: what is read of the input, and by what events are kept apart."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.refused_pattern import PASSED_IN_MANY_WAYS, TOLD

import trendloom as tl
from trendloom.errors import PlanError
from trendloom.logical.plan import KeySet
from trendloom.options import Options
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import queries_of, schema_of_columns

COLUMNS = pa.schema(
    [("time", pa.int64()), ("type", pa.string()), ("g", pa.string()), ("h", pa.string()), ("x", pa.int64()),
     ("y", pa.int64())]
)  # fmt: skip


def workload(text: str) -> PhysicalWorkload:
    return planned(queries_of(text), schema_of_columns(COLUMNS, Options()))


def test_the_input_is_read_once_for_all() -> None:
    found = workload("QUERY a: RETURN COUNT(*) PATTERN A WHERE [h] QUERY b: RETURN SUM(B.y) PATTERN SEQ(A, B)")
    assert found.scan.columns == ("time", "type", "h", "y")
    assert found.scan.types == ("A", "B")


def test_one_query_that_needs_every_event_needs_them_for_all() -> None:
    found = workload("QUERY a: RETURN COUNT(*) PATTERN A QUERY b: PATTERN SEQ(A, B) SEMANTICS contiguous")
    assert found.scan.types is None
    assert found.scan.columns == tuple(COLUMNS.names)


def test_queries_meet_by_the_set_of_their_keys_in_any_order() -> None:
    found = workload(
        """QUERY a: RETURN COUNT(*) PATTERN A WHERE [g, h]
           QUERY b: RETURN COUNT(*) PATTERN A
           QUERY c: RETURN h, COUNT(*) PATTERN A WHERE [h] GROUP BY g, h
           QUERY d: RETURN COUNT(*) PATTERN A WHERE [g]"""
    )
    assert found.key_sets == (KeySet(("g", "h"), (0, 2)), KeySet((), (1,)), KeySet(("g",), (3,)))
    assert found.named((0, 2)) == "a, c"


def test_a_query_that_cannot_run_is_refused_in_a_workload_too() -> None:
    with pytest.raises(PlanError, match=TOLD):
        workload(f"QUERY a: PATTERN A QUERY b: {PASSED_IN_MANY_WAYS}")


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_explain_shows_what_queries_share(engine: str) -> None:
    text = """QUERY a: RETURN COUNT(*) PATTERN A WHERE [g] QUERY b: RETURN SUM(B.y) PATTERN SEQ(A, B) WHERE [g]
              QUERY c: RETURN COUNT(*) PATTERN A+ WITHIN 10 SLIDE 5"""
    found = tl.explain(text, COLUMNS, engine=engine)
    shown = found[found.index("\nWorkload\n") :]
    wanted = {
        "local": ["read 4 of 6 columns, events of 2 types into memory, once", "once by g and time: for a, b"],
        "spark": ["one job for a, b: read 4 of 6 columns", "once by g, sort them once in each task: for a, b", "for c"],
    }
    assert [one for one in wanted[engine] if one not in shown] == []
    assert "\nWorkload\n" not in tl.explain("PATTERN A", COLUMNS, engine=engine)
