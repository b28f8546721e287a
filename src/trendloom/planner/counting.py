"""How the matches of a query can be counted without finding them, exactly or at most.

Users get the number before many matches are listed, and limits refuse what is certainly too much.

Conditions that counting cannot decide are left out, and a bare WITHIN is counted in windows twice as long: then the
number is an upper bound. So it is where EXISTS makes one of several matches, unless remainders can be counted.
Of a bare WITHIN whose conditions all count, a lower bound is known, too (`CountInSpans`): what is certainly too much
can be refused.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.aggregate.block import Count, CountInSpans
from trendloom.kernels.contract.aggregates import AggregationSpec, Measure
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.model.schema import Kind
from trendloom.model.time import Window
from trendloom.planner.aggregation import Grained, needs_pivot
from trendloom.planner.algorithms.pivots import coarsest_grain, per_pivot

MOST_OVERLAPPING = 16
"""Windows of a lower bound that hold one moment: matches that span the last part of so many of WITHIN are left out."""

MATCHES = (Measure("matches", "matches", None, None, Kind.INT),)


def count_of_matches(pattern_spec: PatternSpec, *, complete: bool) -> Count | None:
    """How the matches of a pattern are counted, or its `complete` trends at most; None: not at all."""
    window = pattern_spec.window
    exact = (window.within is None or window.sliding) and not complete
    if window.spanning and pattern_spec.scopes[0].open_ended:
        return None  # a leading or trailing NOT looks at the window: in a longer one it sees more
    if window.spanning:
        assert window.within is not None
        found = _count(pattern_spec, replace(pattern_spec, window=Window(2 * window.within, window.within)), exact)
        in_spans = None if complete else _in_spans(pattern_spec, window.within)
        return None if found is None else replace(found, in_spans=in_spans)
    return _count(pattern_spec, pattern_spec, exact)


def _in_spans(pattern_spec: PatternSpec, within: int) -> CountInSpans | None:
    """How matches that span less than `within` are counted at least; None: counting cannot decide all conditions."""
    overlap = max(number for number in range(1, MOST_OVERLAPPING + 1) if within % number == 0)
    slide = within // overlap
    longer, *shorter = (
        _count(pattern_spec, replace(pattern_spec, window=Window(width, slide)), exact=True)
        for width in (within, within - slide)
        if width
    )
    if longer is None or not longer.exact or any(one is None for one in shorter):
        return None
    return CountInSpans(longer.aggregation, shorter[0].aggregation if shorter and shorter[0] else None, overlap)


def count_of_tried(pattern_spec: PatternSpec) -> tuple[Count | None, bool]:
    """How matches are counted that are tried before conditions on whole variables, and whether all are compared.

    A bare WITHIN is counted in windows of that length that do not overlap: a lower bound.
    """
    window = pattern_spec.window
    if window.spanning and pattern_spec.scopes[0].open_ended:
        return None, False
    first, *others = pattern_spec.scopes
    tried = replace(first, rules=tuple(rule for rule in first.rules if not rule.shape.whole))
    bound = Window(window.within, window.within) if window.spanning else window
    counted = replace(pattern_spec, scopes=(tried, *others), window=bound, sieves=(), hidden=frozenset())
    found = _count(pattern_spec, counted, exact=True)
    if found is None or not found.exact:
        return None, False
    return found, tried.rules == first.rules and found.aggregation.pivot is None and not pattern_spec.hidden


def _count(pattern_spec: PatternSpec, counted: PatternSpec, exact: bool) -> Count | None:
    found = aggregation_of(replace(counted, sieves=()))
    if found is not None:
        return Count(pattern_spec, replace(found, measures=MATCHES), exact)
    if counted.hidden:
        return _count(pattern_spec, replace(counted, hidden=frozenset()), exact=False)
    if counted.earliest or counted.adjacent or len(counted.scopes) > 1:
        return None
    bound = coarsest_grain(counted.without_rules())
    return None if bound is None else Count(pattern_spec, replace(bound.aggregation, measures=MATCHES), False)


def aggregation_of(pattern_spec: PatternSpec) -> AggregationSpec | None:
    """How the matches of a pattern are added up; None: only by finding them."""
    found = per_pivot(pattern_spec) if needs_pivot(pattern_spec) else coarsest_grain(pattern_spec)
    return found.aggregation if isinstance(found, Grained) else None
