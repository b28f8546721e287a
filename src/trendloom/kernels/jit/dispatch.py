"""Operations with one implementation per kind of argument: compiled kernels take the one that fits their types.

An operation is declared with its signature and says what it does; `implements` adds the function that picks. Compiled
code picks once, when it is compiled, and interpreted code at every call: the same function decides for both, so it
may look at its arguments with `class_of` and `lacks` alone, which read types and values alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps as update
from typing import Any, TypeVar

from numba import types
from numba.extending import overload

from trendloom.kernels.jit.interpreted import wrapping

Stub = TypeVar("Stub", bound=Callable[..., Any])
Picks = Callable[..., Callable[..., Any]]


def operation(stub: Stub) -> Stub:
    """Declare an operation; its body is never run."""

    @update(stub)
    def interpreted(*arguments: Any) -> Any:
        found: Any = interpreted
        if found.wrapping:
            with wrapping():
                return found.picks(*arguments)(*arguments)
        return found.picks(*arguments)(*arguments)

    return interpreted  # type: ignore[return-value]


def implements(declared: Callable[..., Any], options: Any, *, wraps: bool = False) -> Callable[[Picks], Picks]:
    """What follows picks an implementation of `declared`, compiled with these options. `wraps` as for `njit`."""

    def decorate(picks: Picks) -> Picks:
        declared.picks, declared.wrapping = picks, wraps  # type: ignore[attr-defined]
        overload(declared, jit_options=options)(picks)
        return picks

    return decorate


def is_interpreted(argument: Any) -> bool:
    """Whether an argument is a value, not its type: no compiler is at work."""
    return not isinstance(argument, types.Type)


def class_of(bundle: Any) -> type:
    """The class of a named tuple, given it or its type."""
    found: type = type(bundle) if isinstance(bundle, tuple) else getattr(bundle, "instance_class", type(bundle))
    return found


def lacks(bundle: Any, field: str) -> bool:
    """Whether a field of a named tuple is None, given it or its type: what needs it is not compiled."""
    if isinstance(bundle, tuple):
        return getattr(bundle, field) is None
    return isinstance(bundle.types[bundle.fields.index(field)], types.NoneType)
