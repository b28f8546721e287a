"""Noise that looks like measurements: values remember the ones before, and follow what drives them with a delay.

Both are the recursion yₜ = a·yₜ₋₁ + xₜ, summed by doubling: after step k every value holds its last 2ᵏ inputs.
Cost: O(n log n) on whole columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def remembered(inputs: Array, memory: float) -> Array:
    """yₜ = memory · yₜ₋₁ + inputsₜ along the first axis, from 0 before the first."""
    found = np.array(inputs, dtype=np.float64)
    step, weight = 1, memory
    while step < len(found) and weight > 1e-12:
        found[step:] += weight * found[:-step]  # the right side is evaluated before it is added
        step, weight = 2 * step, weight * weight
    return found


def wandering(random: np.random.Generator, shape: tuple[int, ...], memory: float) -> Array:
    """Noise of variance 1 whose neighbours correlate by `memory`, along the first axis."""
    shocks = random.normal(0.0, np.sqrt(1.0 - memory * memory), shape)
    shocks[0] /= np.sqrt(1.0 - memory * memory)  # as if it had always been wandering
    return remembered(shocks, memory)


def followed(inputs: Array, steps: float) -> Array:
    """What follows its input with a delay of about `steps` values, and starts at it."""
    memory = float(np.exp(-1.0 / steps))
    shares = (1.0 - memory) * inputs
    shares[0] = inputs[0]
    return remembered(shares, memory)
