"""All matches of a pattern over a block, by growing partial matches in chunks (see `expansion`).

This is the general kernel: every operator, semantics, predicate, NOT and window of the language. Memory is bounded by
the longest match times the chunk; time grows with the partial matches, of which skip-till-any-match has exponentially
many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, check_range, horizons
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.search import SearchKernel
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import CHUNK, Expansion, Filters
from trendloom.kernels.matching.gap_thresholds import comparable
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.partial_matches import Paths, without_context
from trendloom.kernels.matching.reachability import NEVER, end_bounds
from trendloom.kernels.matching.windows import in_windows, matches_of

# Discard events that a false-value consistent condition can never let through, before any partial match is built.
#
# `b[i].x < max(b[..i-1].x)` is false against some events before if it is false against all that could be there: a
# match binds a subset of them. It says that some earlier b is greater, so the greatest candidate so far decides for
# all matches at once. See Zhang, "High-Performance Complex Event Processing for Decision Analytics", ch. 4, on early
# filters.
#
# Cost: O(events) per sieve.


def sifted(automaton: Automaton, block: Block) -> dict[int, Array]:
    """For every step that a sieve speaks of, which events it may bind."""
    passed: dict[int, Array] = {}
    for sieve in automaton.spec.sieves:
        (left,), (right,), known = comparable((sieve.pair,), block)
        candidate = np.zeros(len(block), np.bool_)
        for position in sieve.positions:
            candidate[block.members[position]] = True
        # x → ~x turns the order around: the earlier event must always be the greater one
        left, right = (~left, ~right) if sieve.pair.operator in ("<", "<=") else (left, right)
        or_equal = sieve.pair.operator in ("<=", ">=")
        good = _some_greater_before(left, right, candidate & known[0, 0], block.tie_start, block.key_starts, or_equal)
        good &= known[1, 0]
        for _, step in sieve.pair.steps:
            passed[step] = passed[step] & good if step in passed else good
    return passed


@njit(nogil=True)
def _some_greater_before(
    left: Array, right: Array, candidate: Array, tie_start: Array, key_starts: Array, or_equal: bool
) -> Array:
    found = np.zeros(len(left), np.bool_)
    for key in range(len(key_starts) - 1):
        any_before, greatest, seen = False, np.int64(0), key_starts[key]
        for f in range(key_starts[key], key_starts[key + 1]):
            while seen < tie_start[f]:
                if candidate[seen] and (not any_before or left[seen] > greatest):
                    any_before, greatest = True, left[seen]
                seen += 1
            found[f] = any_before and (greatest > right[f] or (or_equal and greatest == right[f]))
    return found


def enumerate_matches(spec: PatternSpec, block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    automaton = Automaton(spec)
    check_range(block.time, spec.window)

    def make(gaps: Gaps, scope: int) -> Expansion:
        return Expansion(automaton, block, gaps, scope, chunk, filters if scope == 0 else None)

    gaps = Gaps(automaton, block, make)
    filters = None if spec.earliest or spec.adjacent else _filters(gaps)
    roots = without_context(automaton, block, 0, block.keys)
    expansion = make(gaps, 0)
    seen: set[bytes] = set()
    found = expansion.matches(roots, block.key_starts[:-1], block.key_starts[1:], horizons(block, spec.window))
    for paths in found:
        for windowed, start in in_windows(gaps, paths, spec):
            if automaton.ambiguous:
                windowed, start = _unseen(windowed, start, seen)
            if len(windowed):
                yield matches_of(windowed, start)


def _filters(gaps: Gaps) -> Filters:
    """What partial matches can never go on with."""
    ends = end_bounds(gaps.automaton, gaps.block)
    if ends is not None:
        gaps.lookups.delay(ends, NEVER)
    return Filters(ends, sifted(gaps.automaton, gaps.block))


def _unseen(paths: Paths, start: Array | None, seen: set[bytes]) -> tuple[Paths, Array | None]:
    """Bindings that were not given out before: one binding can have several derivations."""
    fresh = []
    positions = paths.automaton.position_of[paths.steps]
    for row in range(len(paths)):
        window = b"" if start is None else start[row].tobytes()
        key = window + paths.events[row].tobytes() + positions[row].tobytes()
        if key not in seen:
            seen.add(key)
            fresh.append(row)
    rows = np.array(fresh, np.int64)
    return paths.take(rows), None if start is None else start[rows]


# Matches of any pattern: partial matches are extended, many at a time.


@dataclass(frozen=True)
class ExpansionKernel(SearchKernel):
    """What no faster algorithm takes."""

    def all(self, block: Block) -> Iterator[Matches]:
        return enumerate_matches(self.pattern_spec, block)
