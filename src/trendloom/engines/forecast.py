"""How many matches there will be, before all are built: trends are counted where they cannot be listed.

Complete trends are counted on their graph, other matches by the aggregation kernels, in doubles (exact below 2^53).
Conditions that these cannot count are left out, and a bare WITHIN is counted in windows twice as long: then the number
is an upper bound. Work that is small anyway is not counted first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trendloom.errors import RunError, option
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregation.aggregate import aggregate
from trendloom.kernels.aggregation.widen import Amounts, Widening
from trendloom.kernels.columns.block import Block
from trendloom.kernels.complete import trends as complete
from trendloom.kernels.detection.complete import MOST_MATCHES, too_many_to_compare
from trendloom.kernels.detection.spec import Detection
from trendloom.kernels.detection.windows import horizons
from trendloom.lang.tree import Trends
from trendloom.model.window import Window
from trendloom.physical.aggregation import count_of
from trendloom.physical.plan import Physical

Array = np.ndarray[Any, Any]

WORTH_COUNTING = 1e6
"""Matches that there could be at most, up to which nothing is counted first."""
MOST_STEPS = 5e8
"""Steps that counting complete trends may take."""
EXACT = 2.0**53
WORTH_A_WARNING = 1e6
"""Events times words of exact numbers from which it takes seconds to compute them."""
MOST_DIGITS_OF_A_DOUBLE = 308


@dataclass(frozen=True)
class Forecast:
    """`exact`: that many there will be; else an upper bound."""

    matches: float
    exact: bool

    def __str__(self) -> str:
        if np.isinf(self.matches):
            return "more than 1e308" if self.exact else "unknown: the bound is beyond 1e308"
        number = f"{int(self.matches):,}" if self.matches < EXACT else f"{self.matches:.3g}"
        if not self.exact:
            return f"at most {number}"
        return number if self.matches < EXACT else f"about {number}"


def forecast_trends(trends: complete.Trends) -> Forecast | None:
    """The number of complete trends, before conditions on the whole; None where counting them would take long."""
    return Forecast(trends.count(), not trends.spec.whole) if trends.counting <= MOST_STEPS else None


def refuse_endless_search(physical: Physical, block: Block) -> None:
    """Refuse complete trends that are found by comparing all matches, where there are too many to find or compare.

    Conditions on whole variables are tested last, on every match that there is without them. A bare WITHIN is counted
    in windows of that length that do not overlap: a lower bound.
    """
    detection = physical.choice.detection
    window = detection.window
    if _crude_bound(detection, block) <= WORTH_COUNTING or (window.spanning and detection.scopes[0].open_ended):
        return
    first, *others = detection.scopes
    tried = replace(first, rules=tuple(rule for rule in first.rules if not rule.shape.whole))
    bound = Window(window.within, window.within) if window.spanning else window
    spec, exact = count_of(replace(detection, scopes=(tried, *others), window=bound, sieves=()))
    if spec is None or not exact:
        return
    parts = [_numbers(totals.values["matches"]) for totals in aggregate(spec, block, "float")]
    found = np.concatenate([np.zeros(0), *parts])
    if tried.rules == first.rules and spec.pivot is None and found.max(initial=0) > MOST_MATCHES:
        raise too_many_to_compare(str(Forecast(float(found.max()), True)))
    total = Forecast(float(found.sum()), True)
    if total.matches > physical.limits.trends:
        raise RunError(
            f"complete trends of this query are found among all its matches: {total} would be tried",
            hint=f"use a smaller window or more partition attributes; {option('max_trends')} allows more",
        )


def forecast_matches(physical: Physical, block: Block) -> Forecast | None:
    """The number of matches, or a bound; None where there cannot be many, or nothing can be counted."""
    detection = physical.choice.detection
    if _crude_bound(detection, block) <= WORTH_COUNTING:
        return None
    window = detection.window
    counted = (window.within is None or window.sliding) and physical.plan.output is not Trends.COMPLETE
    if window.spanning and detection.scopes[0].open_ended:
        return None  # a leading or trailing NOT looks at the window: in a longer one it sees more
    if window.spanning:
        assert window.within is not None
        detection = replace(detection, window=Window(2 * window.within, window.within))
    spec, exact = count_of(detection)
    if spec is None:
        return None
    found = sum(float(_numbers(totals.values["matches"]).sum()) for totals in aggregate(spec, block, "float"))
    return Forecast(found, exact and counted)


def _numbers(amounts: Amounts | Vector) -> Array:
    assert isinstance(amounts, Amounts)
    values = amounts.values.astype(np.float64)
    if amounts.exponent is not None:
        with np.errstate(over="ignore"):
            values = np.ldexp(values, np.minimum(amounts.exponent, 1 << 20).astype(np.int32))
    return values


def _crude_bound(detection: Detection, block: Block) -> float:
    """At most so many: every choice of later events, of as many as a match without Kleene parts can have."""
    if len(block) == 0:
        return 0.0
    horizon = horizons(block, detection.window)
    limit = block.key_starts[1:][block.key] if horizon is None else horizon
    reach = np.maximum(limit - np.arange(len(block)), 1).astype(np.float64)
    kleene = bool(detection.plural)
    positions = sum(place.scope == 0 for place in detection.places)
    with np.errstate(over="ignore"):
        # with several positions an event can stand at more than one of them
        choices = (1.0 + positions) ** reach if kleene else reach ** (positions - 1) * positions
    overlap = 1.0
    if detection.window.slide is not None and detection.window.within is not None:
        overlap = max(1.0, detection.window.within / detection.window.slide)
    return float(choices.sum() * overlap)


def warning_of_digits(widening: Widening) -> str | None:
    """What to say before long numbers are computed; None where that takes no time."""
    if widening.work < WORTH_A_WARNING:
        return None
    return (
        f"exact numbers of about {widening.digits:,} digits are computed, which takes long: "
        f"{option('numeric', 'log')} gives their logarithms at once"
        + (f", {option('numeric', 'float')} gives doubles" if widening.digits <= MOST_DIGITS_OF_A_DOUBLE else "")
    )


def refuse_too_many(physical: Physical, forecast: Forecast | None) -> None:
    """Refuse to give out more matches than allowed, before anything is built."""
    if forecast is not None and forecast.exact and forecast.matches > physical.limits.trends:
        raise too_many(physical, str(forecast))


def refuse_too_many_to_try(physical: Physical, forecast: Forecast | None) -> None:
    """Refuse to walk more complete trends than may be given out, where conditions on the whole come last."""
    if forecast is not None and not forecast.exact and forecast.matches > physical.limits.trends:
        number = str(replace(forecast, exact=True))
        raise RunError(
            f"there are {number} complete trends without the conditions on the whole of them, too many to try",
            hint="use a smaller window or more partition attributes; "
            f"{option('limit', 1000)} gives out so many of them, {option('max_trends')} tries more",
        )


def too_many(physical: Physical, number: str) -> RunError:
    return RunError(
        f"there are {number} matches, more than {physical.limits.trends:,} to give out one by one",
        hint="RETURN COLLAPSED TRENDS or COUNT(*) say the same in few rows, RANK BY gives the best ones, a smaller "
        f"WITHIN has fewer; {option('limit', 1000)} gives out so many of them, {option('max_trends')} allows more",
    )
