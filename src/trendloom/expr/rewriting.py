"""Expressions with something else in the place of some of their leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Total


def of_any_event(expr: Expr) -> Expr:
    """A condition on one event, whatever its variable is called."""
    return with_attributes(expr, lambda one: replace(one, variable="event"))


def with_attributes(expr: Expr, changed: Callable[[Attribute], Expr]) -> Expr:
    """The expression with something else in the place of each attribute."""
    return _with(expr, lambda one: changed(one) if isinstance(one, Attribute) else None)


def renamed(expr: Expr, name_of: Callable[[str], str]) -> Expr:
    """The same expression with other names for its variables."""

    def other(one: Expr) -> Expr | None:
        if isinstance(one, Attribute | Aggregate | Extent):
            return replace(one, variable=name_of(one.variable))
        if isinstance(one, Fold):
            parts = (replace(p, variable=name_of(p.variable), expr=renamed(p.expr, name_of)) for p in one.parts)
            return replace(one, parts=tuple(parts))
        return None

    return _with(expr, other)


def with_totals(expr: Expr, changed: Callable[[Total], Expr]) -> Expr:
    """The expression with something else in the place of each aggregate over matches."""
    return _with(expr, lambda one: changed(one) if isinstance(one, Total) else None)


def _with(expr: Expr, changed: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with something else in the place of each node for which there is something else."""
    other = changed(expr)
    if other is not None:
        return other
    if isinstance(expr, Fold):
        return replace(expr, parts=tuple(replace(part, expr=_with(part.expr, changed)) for part in expr.parts))
    parts: dict[str, Any] = {}
    for one in fields(expr):
        value = getattr(expr, one.name)
        if isinstance(value, Expr):
            parts[one.name] = _with(value, changed)
        elif isinstance(value, tuple):
            parts[one.name] = tuple(_with(part, changed) if isinstance(part, Expr) else part for part in value)
    return replace(expr, **parts) if parts else expr
