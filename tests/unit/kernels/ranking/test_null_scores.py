"""Matches without a score fill the ranks that no other match takes, also beside partitions without any event."""

import pyarrow as pa
import pytest

import trendloom as tl


def events(rows: list[tuple[int, str, int | None, int]]) -> pa.Table:
    time, types, x, k = zip(*rows, strict=True)
    return pa.table({"time": time, "type": types, "x": pa.array(x, pa.int64()), "k": k})


SOME_NULL = events(
    [(0, "A", 1, 1), (1, "A", None, 1), (2, "A", 2, 1), (3, "B", None, 1), (4, "B", 3, 1), (5, "C", None, 2)]
)
ALL_NULL = events([(0, "A", None, 1), (1, "A", None, 1), (3, "B", None, 1), (4, "B", None, 2), (5, "A", 1, 3)])


@pytest.mark.parametrize("stream", [SOME_NULL, ALL_NULL], ids=["some", "all"])
@pytest.mark.parametrize("window", ["", "WITHIN 3 s", "WITHIN 9 s", "WITHIN 4 s SLIDE 2 s", "WITHIN 4 s SLIDE 4 s"])
@pytest.mark.parametrize("semantics", ["skip-till-any-match", "skip-till-next-match", "contiguous"])
@pytest.mark.parametrize(
    ("pattern", "score"), [("SEQ(A a, B b)", "a.x"), ("SEQ(A+ a[], B b)", "b.x"), ("SEQ(A+ a[], B b)", "sum(a[].x)")]
)
@pytest.mark.parametrize("limit", ["1", "4", "2 OVERALL"])
def test_null_scores_come_last(
    stream: pa.Table, window: str, semantics: str, pattern: str, score: str, limit: str
) -> None:
    query = (
        f"RETURN TRENDS PATTERN {pattern} SEMANTICS {semantics} WHERE [k] {window} RANK BY {score} DESC LIMIT {limit}"
    )
    found, expected = (tl.run(query, stream, engine=engine, time_unit="s") for engine in ("local", "reference"))
    assert found.to_pylist() == expected.to_pylist()
