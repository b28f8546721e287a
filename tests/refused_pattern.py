"""A query that binds and that no algorithm runs, for tests of how that is told."""

from __future__ import annotations

PASSED_IN_MANY_WAYS = f"PATTERN SEQ(A, {', '.join(['OR(SEQ(NOT X, B?), SEQ(NOT Y, B?))'] * 12)}, A)"
TOLD = "NOTs in optional parts can be passed in more than 1000 ways"
