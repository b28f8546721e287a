"""Put matches with the same events outside Kleene variables together: the definition, on columns.

This is the general way, for patterns whose gaps depend on more than the events around them. Matches are put together
while they are found, so that memory grows with the rows, not with the matches.
Cost: O(matches · length · log), so whoever enumerates matches for it sets a limit (`up_to`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.match.search import CERTAIN_FROM
from trendloom.kernels.trends.collapsed.spec import MATCHES

# Number rows of integers: equal rows get equal numbers. O(rows · columns · log rows).


FAR = 2**62


def packed(columns: Sequence[Array]) -> Array:
    """One integer per row that is equal, and sorts, as the row does. Columns hold no negative numbers."""
    code = columns[0].astype(np.int64)
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if (int(code.max(initial=0)) + 1) * width >= FAR:
            code = np.unique(code, return_inverse=True)[1].reshape(-1)
        code = code * width + column
    return code


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """For every different row the first place where it stands, and for every row its number; they sort as rows do."""
    _, first, number = np.unique(packed(columns), return_index=True, return_inverse=True)
    return first, number.reshape(-1)


MOST_HELD = 1 << 22
"""Events of matches that are held before they are put together, unless the rows themselves have more."""


def merged(found: Iterable[Matches], pattern_spec: PatternSpec, block: Block) -> Iterator[Matches]:
    """One row for all matches, or rows that already stand for several, with the same spine; in one chunk."""
    held: list[Matches] = []
    size, limit = 0, MOST_HELD
    for matches in found:
        if MATCHES not in matches.columns:
            matches = replace(matches, columns={MATCHES: np.ones(len(matches), np.int64)})
        held.append(replace(matches, columns={MATCHES: matches.columns[MATCHES]}))
        size += len(matches.events)
        if size > limit:
            held = [_together(join(held), pattern_spec, block)]
            size = len(held[0].events)
            limit = max(MOST_HELD, 2 * size)
    if held:
        yield _together(join(held), pattern_spec, block)


def up_to(most: int, found: Iterable[Matches]) -> Iterator[Matches]:
    """The same matches, unless there are more than so many."""
    count = 0
    for matches in found:
        count += len(matches)
        if count > most:
            raise RunError(
                f"more than {most:,} matches to enumerate for collapsed trends (explain says why it must)",
                hint="use COUNT(*), a smaller window, or more selective predicates",
            )
        yield matches


def _together(matches: Matches, pattern_spec: PatternSpec, block: Block) -> Matches:
    group, first = _groups(matches, pattern_spec, block)
    label, representative = _labels(pattern_spec)
    bound = label[matches.positions]
    entry = np.unique(packed([group[matches.match], matches.events, bound]), return_index=True)[1]
    sizes = np.bincount(group[matches.match[entry]], minlength=len(first))
    return Matches(
        np.r_[0, np.cumsum(sizes)].astype(np.int64),
        matches.events[entry],
        representative[bound[entry]],
        None if matches.window_start is None else matches.window_start[first],
        {MATCHES: _sums(matches, group, len(first)), CERTAIN_FROM: _certain_from(matches, pattern_spec)[first]},
    )


def _labels(pattern_spec: PatternSpec) -> tuple[Array, Array]:
    """Per position a number, the same for those of one Kleene variable, by name; and per number its first position."""
    places = pattern_spec.places
    named = [(place.variable, -1 if place.variable in pattern_spec.plural else p) for p, place in enumerate(places)]
    listed = sorted(set(named))
    label = np.array([listed.index(name) for name in named], np.int64)
    return label, np.array([named.index(name) for name in listed], np.int32)


def _groups(matches: Matches, pattern_spec: PatternSpec, block: Block) -> tuple[Array, Array]:
    """The number of every row's group, and a row of each group."""
    code = block.key[matches.first]
    if matches.window_start is not None:
        code = packed([code, np.unique(matches.window_start, return_inverse=True)[1].reshape(-1)])
    row, event, position = _fixed(matches, pattern_spec)
    begin = np.searchsorted(row, np.arange(len(matches) + 1))
    for nth in range(int(np.diff(begin).max(initial=0))):
        has = np.flatnonzero(np.diff(begin) > nth)
        entry = np.zeros(len(matches), np.int64)
        entry[has] = event[begin[has] + nth] * len(pattern_spec.places) + position[begin[has] + nth] + 1
        code = distinct([code, entry])[1]
    first, group = distinct([code])
    return group, first


def _fixed(matches: Matches, pattern_spec: PatternSpec) -> tuple[Array, Array, Array]:
    """(row, event, position) of all that is bound outside Kleene variables, in this order."""
    fixed = np.array([place.variable not in pattern_spec.plural for place in pattern_spec.places], np.bool_)
    entry = np.flatnonzero(fixed[matches.positions])
    columns = matches.match[entry], matches.events[entry], matches.positions[entry].astype(np.int64)
    order = np.lexsort(columns[::-1])
    row, event, position = (column[order] for column in columns)
    return row, event, position


def _sums(matches: Matches, group: Array, groups: int) -> Array:
    values = matches.columns[MATCHES]
    if values.dtype == np.int64 and int(values.max(initial=0)) * len(values) >= 2**63:
        values = values.astype(object)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(groups))
    return np.add.reduceat(values[order], bounds) if groups else values[:0]


def _certain_from(matches: Matches, pattern_spec: PatternSpec) -> Array:
    """The first event outside Kleene variables, or the first where there is none."""
    found = matches.first.copy()
    row, event, _ = _fixed(matches, pattern_spec)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    found[row[first]] = event[first]
    return found
