"""Plain counts with one key set, as many as a workload needs."""

from __future__ import annotations


def plain_queries(count: int) -> dict[str, str]:
    """Counts with one key set, by name."""
    types = ("A", "B", "C")
    return {
        f"q{n}": f"RETURN key, COUNT(*) PATTERN SEQ({types[n % 3]} a+, {types[(n + 1) % 3]} b) WHERE [key] "
        f"AND a.price > {n} GROUP BY key WITHIN {n + 1} minutes SLIDE {n + 1} minutes"
        for n in range(count)
    }


def in_one_text(queries: dict[str, str]) -> str:
    return "\n".join(f"QUERY {name}: {query}" for name, query in queries.items())
