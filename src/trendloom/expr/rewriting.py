"""Expressions with something else in the place of their attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from trendloom.expr.nodes import Attribute, Expr


def of_any_event(expr: Expr) -> Expr:
    """A condition on one event, whatever its variable is called."""
    return with_attributes(expr, lambda one: replace(one, variable="event"))


def with_attributes(expr: Expr, changed: Callable[[Attribute], Expr]) -> Expr:
    """The expression with something else in the place of each attribute."""
    if isinstance(expr, Attribute):
        return changed(expr)
    parts: dict[str, Any] = {}
    for one in fields(expr):
        value = getattr(expr, one.name)
        if isinstance(value, Expr):
            parts[one.name] = with_attributes(value, changed)
        elif isinstance(value, tuple):
            parts[one.name] = tuple(
                with_attributes(part, changed) if isinstance(part, Expr) else part for part in value
            )
    return replace(expr, **parts) if parts else expr
