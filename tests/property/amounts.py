"""How many random cases a property is tried on: some that are the same in every run, or many new ones.

`make test` looks at the same ones each time, `make test-deep` at as many as TRENDLOOM_EXAMPLES says.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

MORE = os.environ.get("TRENDLOOM_EXAMPLES")


def amount(usual: int) -> int:
    """How many cases where `usual` ones are for every day."""
    return int(MORE or usual)


def thorough(examples: int) -> settings:
    """Settings for that many cases, whatever time they take."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=not MORE)
