"""Names and functions of other languages, as the binder meets them: each hint says what to write here."""

from __future__ import annotations

import pytest
from tests.unit.logical.test_bind_errors import check

SEQ = "PATTERN SEQ(A a, B+ b[])"


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        (f"{SEQ} WHERE ⟨g⟩", "'g' alone is not a condition", "[g]"),
        (f"{SEQ} WHERE a.x > 1 AND ⟨g⟩", "'g' alone is not a condition", "[g]"),
        (f"{SEQ} WHERE b.x > ⟨PREV(b.x)⟩", "unknown function 'prev'", "write b[i-1].x, and b[i].x"),
        (f"{SEQ} WHERE b.x > ⟨PREV(b)⟩", "unknown function 'prev'", "write b[i-1].x, and b[i].x"),
        (f"{SEQ} WHERE b.x > ⟨LAG(b.x, 1)⟩", "unknown function 'lag'", "write b[i-1].x"),
        (f"{SEQ} WHERE b.x < ⟨LEAD(b.x)⟩", "unknown function 'lead'", "write NEXT(b).x"),
        (f"{SEQ} RETURN ⟨LAST(b.price)⟩", "unknown function 'last'", "write b[last].price"),
        (f"{SEQ} RETURN ⟨FIRST(b.price)⟩", "unknown function 'first'", "write b[first].price"),
        (
            f"{SEQ} WHERE ⟨median(b[].x)⟩ > 3",
            "unknown function 'median'",
            "avg(b[].x); for others, RETURN TRENDS",
        ),
        (f"{SEQ} RETURN ⟨STDDEV(b.x)⟩", "unknown function 'stddev'", "there is count, min, max, sum and avg"),
        (f"{SEQ} RETURN ⟨mean(b.x)⟩", "unknown function 'mean'", "write avg(b[].x) of one match, or AVG(b.x) over all"),
        (f"{SEQ} WHERE ⟨datediff(a.time, b.time)⟩ < 5", "unknown function 'datediff'", "b.time - a.time < 5 min"),
        (f"{SEQ} WHERE ⟨SAME(g)⟩", "unknown function 'same'", "write [g]"),
        (f"{SEQ} WHERE b.time < ⟨now()⟩", "unknown function 'now'", "'2024-01-31 12:00:00'"),
        (f"{SEQ} RETURN ⟨CLASSIFIER()⟩", "unknown function 'classifier'", "RETURN TRENDS"),
        (f"{SEQ} WHERE ⟨count(b)⟩ > 3", "aggregate over all matches", "write count(b[])"),
        (f"{SEQ} WHERE ⟨SUM(b.x)⟩ > 3", "aggregate over all matches", "write sum(b[].x)"),
        (f"{SEQ} RETURN ⟨COUNT⟩", "'COUNT' is a function", "write COUNT(*)"),
        (f"{SEQ} RETURN ⟨COUNT()⟩", "count of what?", "write COUNT(*)"),
        (f"{SEQ} RETURN COUNT(*) HAVING ⟨count⟩ > 3", "'count' is a function", "write COUNT(*)"),
    ],
)
def test_the_hint_is_what_to_write(query: str, message: str, hint: str) -> None:
    check(query, message, hint)
