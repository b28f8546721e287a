"""`njit` for baselines: they are compiled where benchmarks run, and interpreted where kernels are, in daily tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trendloom.kernels.jit.compiled import njit as njit_of_kernels


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """As `numba.njit`; the code is not kept from one run to the next, so it is never stale."""
    decorate = njit_of_kernels(cache=False, nogil=True, **options)
    return decorate if function is None else decorate(function)
