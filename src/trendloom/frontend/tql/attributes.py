"""The attributes that a query names, whatever they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from trendloom.frontend.tql import tree


def attributes_of(node: object) -> Iterator[str]:
    """Every attribute that is named in a syntax tree, GROUP BY included."""
    if isinstance(node, tree.Query):
        yield from node.group_by
    if isinstance(node, tree.Reference) and node.attribute is not None:
        yield node.attribute
    elif isinstance(node, tree.Name):
        yield node.name
    elif isinstance(node, tree.Equivalence):
        yield from node.attributes
    elif isinstance(node, tuple):
        for part in node:
            yield from attributes_of(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from attributes_of(getattr(node, field.name))
