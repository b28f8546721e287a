"""The answer that the unsafe-tool benchmark is checked against is right, and there is something to find."""

from __future__ import annotations

from benchmarks.cases.events import same_rows
from benchmarks.matching.unsafe_tool import UNSAFE, ends_of, tool_histories, unsafe_uses

import trendloom as tl


def test_answers_agree() -> None:
    table = tool_histories(600, 5, unsafe=0.4)
    expected = unsafe_uses(table)
    assert len(expected) > 10
    assert same_rows(ends_of(tl.run(UNSAFE, table, engine="reference")), expected)
    assert same_rows(ends_of(tl.run(UNSAFE, table, engine="local")), expected)
