"""Places and prefixes of the events of one batch in the trees of every arm (`structure_codes`), and what is done there.

Words that hold a code and an item are sorted by counting codes where a batch holds most of them, O(m), else by merging,
O(m log m) whatever the order of the values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.event_grained.structures import HASH, NESTED, SOURCE, SUM, TARGET, TREE, Arms
from trendloom.kernels.columns.fenwick import (
    arrange,
    erase,
    erase_nested,
    gather,
    gather_nested,
    inner_begins,
    insert,
    insert_nested,
    merge,
    nested_cells,
    wipe,
)
from trendloom.kernels.columns.sort import bit_length, sort_words
from trendloom.kernels.jit.compiled import INSIDE, njit

SPARSE = 4
"""A batch is sorted by counting if there are at most so many times as many codes as items."""


class NestedTrees(NamedTuple):
    """Trees for two orders: the one that begins at b has its cells from `begin[arm, b]` of the arm on.

    `ranks` and `begins`: their inner trees, see `fenwick`.
    """

    begin: Array
    ranks: Array
    begins: Array
    scratch: Array


class Places(NamedTuple):
    """By arm and item of the batch (counted within its state). `base` is the first cell of each arm.

    Earlier events: `place[arm, dimension]` (−1: unknown values) in the tree at `begin`. Later ones: `prefix[arm,
    dimension]` of the tree at `tree`. The tree at b has `size[arm, b]` places. `nested` is None in a plain graph: what
    nested trees need is not compiled then.
    """

    base: Array
    place: Array
    begin: Array
    size: Array
    prefix: Array
    tree: Array
    nested: Any
    words: Array
    tally: Array


class SortedCodes(NamedTuple):
    """`words[:used]`, in order: codes with their items, which are the lowest `bits`."""

    words: Array
    used: int
    bits: int


def cells_of(arms: Arms, most_sources: Array) -> Array:
    """How many cells every arm takes; `most_sources[s]` is the greatest number of items of state s in a batch."""
    sources = most_sources[arms.source] if len(arms.kind) else np.zeros(0, np.int64)
    found = np.where(arms.kind == HASH, arms.distinct[:, 0], np.where(arms.kind == SUM, 1, sources))
    nested = [nested_cells(int(n)) if kind == NESTED else 0 for kind, n in zip(arms.kind, sources, strict=True)]
    return np.maximum(found, np.array(nested, np.int64))


def empty_places(arms: Arms, most: Array, *, plain: bool) -> Places:
    """Room for the places of any batch that has at most `most[s]` items of state s."""
    cells = cells_of(arms, most)
    count = len(arms.kind) if (arms.kind >= TREE).any() else 0
    longest = int(most.max(initial=0))
    shape = (count, longest)
    nested = None
    if not plain:
        deepest = longest if (arms.kind == NESTED).any() else 0
        ranks = np.zeros(int(cells.sum()) if deepest else 0, np.int32)
        scratch = np.zeros((2, deepest), np.int64)
        nested = NestedTrees(np.zeros((count, deepest), np.int64), ranks, inner_begins(deepest), scratch)
    return Places(
        np.cumsum(cells) - cells,
        np.zeros((count, 2, longest), np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros((count, 2, longest), np.int32),
        np.zeros(shape, np.int32),
        nested,
        np.zeros((3, longest if count else 0), np.int64),
        np.zeros(min(SPARSE * longest, int(arms.distinct.max())) + 1 if count else 0, np.int64),
    )


# -------------------------------------------------------------------------------------------- before a sweep


@njit(**INSIDE)
def place_arm(arms: Any, places: Any, arm: Any, first: Any, last: Any) -> Any:
    """Places and prefixes of a batch: of state s the items with ordinals `first[s]` to `last[s]`.

    Returns how many cells its trees take; sums and tables have fixed places.
    """
    if arms.kind[arm] < TREE:
        return 0
    source, target = arms.source[arm], arms.target[arm]
    sources, targets = last[source] - first[source], last[target] - first[target]
    bits = bit_length(max(sources, targets))
    places.place[arm, :, :sources] = -1
    places.prefix[arm, :, :targets] = 0
    used = 0
    for dimension in range(2 if arms.kind[arm] == NESTED else 1):
        at = arms.code_at[arm, dimension]
        many = arms.distinct[arm, dimension]
        used = _sort(arms.codes, at[SOURCE] + first[source], sources, bits, many, places, places.words[0])
        earlier = later = SortedCodes(places.words[0], used, bits)
        _place_sources(arms, places, arm, dimension, first[source], earlier)
        if not arms.same[arm]:
            asked = _sort(arms.codes, at[TARGET] + first[target], targets, bits, many, places, places.words[1])
            later = SortedCodes(places.words[1], asked, bits)
        _place_targets(arms, places, arm, dimension, first, earlier, later)
    if arms.kind[arm] == NESTED:
        return _arrange_nested(places.nested, places, arm, sources, used)
    return used


@njit(**INSIDE)
def _sort(codes: Any, begin: Any, count: Any, bits: Any, many: Any, places: Any, words: Any) -> Any:
    """Fill `words` with (code, item) of the items that have a code (out of `many`), in order; returns how many."""
    if many <= SPARSE * count:
        return _count_codes(codes, begin, count, bits, many, places.tally, words)
    used = 0
    for item in range(count):
        if codes[begin + item] >= 0:
            words[used] = (codes[begin + item] << bits) | item
            used += 1
    sort_words(words, used, places.words[2])
    return used


@njit(**INSIDE)
def _count_codes(codes: Any, begin: Any, count: Any, bits: Any, many: Any, tally: Any, words: Any) -> Any:
    """The same, by counting how often each code occurs."""
    tally[: many + 1] = 0
    for item in range(count):
        tally[codes[begin + item] + 1] += 1  # items without a code are counted in front
    tally[0] = 0
    for code in range(many):
        tally[code + 1] += tally[code]
    for item in range(count):
        code = codes[begin + item]
        if code >= 0:
            words[tally[code]] = (code << bits) | item
            tally[code] += 1
    return tally[many - 1]


@njit(**INSIDE)
def _place_sources(arms: Any, places: Any, arm: Any, dimension: Any, first: Any, earlier: Any) -> None:
    """Earlier events in order of their codes: class after class, each a tree of its own."""
    words, used, mask = earlier.words, earlier.used, (np.int64(1) << earlier.bits) - 1
    classes, begin = arms.class_at[arm, SOURCE], 0
    while begin < used:
        end = used
        if classes >= 0:
            mine, end = arms.classes[classes + first + (words[begin] & mask)], begin + 1
            while end < used and arms.classes[classes + first + (words[end] & mask)] == mine:
                end += 1
        for at in range(begin, end):
            item = words[at] & mask
            places.place[arm, dimension, item] = at - begin
            if classes >= 0:  # else there is one tree, and `begin` is always 0: three random writes less
                places.begin[arm, item] = begin
        places.size[arm, begin] = end - begin
        begin = end


@njit(**INSIDE)
def _place_targets(
    arms: Any, places: Any, arm: Any, dimension: Any, first: Any, earlier: Any, later: Any
) -> None:  # fmt: skip
    """Later events in order of their codes, beside the earlier ones: how many of their class come before them."""
    words, used, bits, mask = earlier.words, earlier.used, earlier.bits, (np.int64(1) << earlier.bits) - 1
    mine = arms.class_at[arm, TARGET] + first[arms.target[arm]]
    theirs = arms.class_at[arm, SOURCE] + first[arms.source[arm]]
    one_class, strict = arms.class_at[arm, SOURCE] < 0, arms.strict[arm, dimension]
    passed = 0
    for at in range(later.used):
        item, code = later.words[at] & mask, later.words[at] >> bits
        while passed < used and (words[passed] >> bits) + strict <= code:
            passed += 1
        if passed > 0:
            last = words[passed - 1] & mask
            if one_class:
                places.prefix[arm, dimension, item] = passed
            elif arms.classes[mine + item] == arms.classes[theirs + last]:
                places.tree[arm, item] = places.begin[arm, last]
                places.prefix[arm, dimension, item] = passed - places.begin[arm, last]


# ---------------------------------------------------------------------------------------------- in a sweep


@njit(**INSIDE, forceinline=True)
def insert_item(arms: Any, places: Any, arm: Any, ordinal: Any, item: Any, nodes: Any, values: Any, cell: Any) -> None:
    """Let later events find a value. `ordinal` counts items of its state in the block, `item` in the batch."""
    kind, base = arms.kind[arm], places.base[arm]
    if kind == SUM:
        merge(nodes, base, values, cell)
    elif kind == HASH:
        code = arms.codes[arms.code_at[arm, 0, SOURCE] + ordinal]
        if code >= 0:
            merge(nodes, base + code, values, cell)
    elif places.place[arm, 0, item] >= 0:
        begin, place = places.begin[arm, item], places.place[arm, 0, item]
        count = places.size[arm, begin]
        if kind == TREE:
            insert(nodes, base + begin, count, place, values, cell)
        else:
            _insert_nested(places.nested, places, arm, item, nodes, values, cell)


@njit(**INSIDE, forceinline=True)
def gather_item(arms: Any, places: Any, arm: Any, ordinal: Any, item: Any, nodes: Any, values: Any, cell: Any) -> None:
    """Merge all values that an event may follow into its own."""
    kind, base = arms.kind[arm], places.base[arm]
    if kind == SUM:
        merge(values, cell, nodes, base)
    elif kind == HASH:
        code = arms.codes[arms.code_at[arm, 0, TARGET] + ordinal]
        if code >= 0:
            merge(values, cell, nodes, base + code)
    elif kind == TREE:
        gather(values, cell, nodes, base + places.tree[arm, item], places.prefix[arm, 0, item])
    else:
        _gather_nested(places.nested, places, arm, item, nodes, values, cell)


@njit(**INSIDE)
def erase_item(arms: Any, places: Any, arm: Any, ordinal: Any, item: Any, nodes: Any) -> None:
    """Empty every cell that the insertion of an item has touched."""
    kind, base = arms.kind[arm], places.base[arm]
    if kind == SUM:
        wipe(nodes, base)
    elif kind == HASH:
        code = arms.codes[arms.code_at[arm, 0, SOURCE] + ordinal]
        if code >= 0:
            wipe(nodes, base + code)
    elif places.place[arm, 0, item] >= 0:
        begin, place = places.begin[arm, item], places.place[arm, 0, item]
        count = places.size[arm, begin]
        if kind == TREE:
            erase(nodes, base + begin, count, place)
        else:
            _erase_nested(places.nested, places, arm, item, nodes)


# --------------------------------------------------------------- in nested trees; `nested` is None in a plain graph


@njit(**INSIDE)
def _arrange_nested(nested: Any, places: Any, arm: Any, sources: Any, used: Any) -> Any:
    """Arrange the nested trees of every class, one after another; returns how many cells they take."""
    if nested is None:
        return used
    outer, filled = nested.scratch[0], nested.scratch[1]
    for item in range(sources):
        if places.place[arm, 0, item] >= 0:
            outer[places.begin[arm, item] + places.place[arm, 1, item]] = places.place[arm, 0, item]
    cells, begin = 0, 0
    while begin < used:
        count = places.size[arm, begin]
        nested.begin[arm, begin] = cells
        tree = outer[begin : begin + count]
        arrange(nested, places.base[arm] + cells, tree, count, filled)
        cells += nested.begins[count]
        begin += count
    return cells


@njit(**INSIDE)
def _insert_nested(nested: Any, places: Any, arm: Any, item: Any, nodes: Any, values: Any, cell: Any) -> None:
    """As `insert_item`, into a nested tree."""
    if nested is None:
        return
    begin, first, second = places.begin[arm, item], places.place[arm, 0, item], places.place[arm, 1, item]
    tree, count = places.base[arm] + nested.begin[arm, begin], places.size[arm, begin]
    insert_nested(nodes, tree, nested, count, first, second, values, cell)


@njit(**INSIDE)
def _gather_nested(nested: Any, places: Any, arm: Any, item: Any, nodes: Any, values: Any, cell: Any) -> None:
    """As `gather_item`, from a nested tree."""
    if nested is None:
        return
    first, second = places.prefix[arm, 0, item], places.prefix[arm, 1, item]
    if first > 0 and second > 0:
        tree = places.base[arm] + nested.begin[arm, places.tree[arm, item]]
        gather_nested(values, cell, nodes, tree, nested, first, second)


@njit(**INSIDE)
def _erase_nested(nested: Any, places: Any, arm: Any, item: Any, nodes: Any) -> None:
    """As `erase_item`, in a nested tree."""
    if nested is None:
        return
    begin, first, second = places.begin[arm, item], places.place[arm, 0, item], places.place[arm, 1, item]
    tree, count = places.base[arm] + nested.begin[arm, begin], places.size[arm, begin]
    erase_nested(nodes, tree, nested, count, first, second)
