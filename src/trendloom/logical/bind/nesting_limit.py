"""How deep a query may be nested: everything that walks over patterns and expressions goes down level by level.

Python's stack bounds that. A query beyond the bound is refused before anything walks over it, not in the middle of a
run. Cost: one look at every node, without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.errors import BindError
from trendloom.frontend import tree

MOST = 100
_OF_A_PATTERN = 2.0
_OF_A_TERM = 0.4  # `a + b + c + ...` is nested too, without parentheses
_PATTERNS = tree.Seq | tree.Repeat | tree.Not | tree.Or | tree.And | tree.Exists | tree.OperandWithin


def check_depth(query: tree.Query) -> None:
    """An error where patterns or expressions are nested too deeply."""
    stack: list[tuple[tree.Node, float]] = [(query, 0.0)]
    while stack:
        node, depth = stack.pop()
        if depth > MOST:
            raise too_deep(query)
        stack.extend((part, depth + _weight(part)) for part in _parts(node))


def too_deep(query: tree.Query) -> BindError:
    return BindError(
        "the query is nested too deeply",
        query.clause("PATTERN"),
        hint="use fewer brackets and NOTs inside each other, and + instead of a large {n,m}",
        text=query.text,
    )


def _weight(node: tree.Node) -> float:
    if isinstance(node, tree.Binary):
        return _OF_A_TERM
    return _OF_A_PATTERN if isinstance(node, _PATTERNS) else 1


def _parts(node: tree.Node) -> Iterator[tree.Node]:
    for value in vars(node).values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, tree.Node):
                yield part
