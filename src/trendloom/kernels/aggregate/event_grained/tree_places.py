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
    Cells,
    InnerTrees,
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
from trendloom.kernels.jit.compiled import INSIDE, implements, lacks, njit, operation

SPARSE = 4
"""A batch is sorted by counting if there are at most so many times as many codes as items."""


class Places(NamedTuple):
    """By arm and item of the batch (counted within its state). `base` is the first cell of each arm.

    Earlier events: `place[arm, dimension]` (−1: unknown values) in the tree at `begin`. Later ones: `prefix[arm,
    dimension]` of the tree at `tree`. The tree at b has `size[arm, b]` places; a nested one begins at `deep[arm, b]`.
    Beside a plain graph there is no nested tree: `ranks` is None, and what nested trees need is not compiled.
    """

    base: Array
    place: Array
    begin: Array
    size: Array
    prefix: Array
    tree: Array
    deep: Array
    begins: Array
    ranks: Any
    words: Array
    tally: Array
    scratch: Array


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
    nested = bool((arms.kind == NESTED).any())
    longest = int(most.max(initial=0))
    shape = (count, longest)
    deepest = longest if nested else 0
    return Places(
        np.cumsum(cells) - cells,
        np.zeros((count, 2, longest), np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros((count, 2, longest), np.int32),
        np.zeros(shape, np.int32),
        np.zeros((count, deepest), np.int64),
        inner_begins(deepest),
        None if plain else np.zeros(int(cells.sum()) if nested else 0, np.int32),
        np.zeros((3, longest if count else 0), np.int64),
        np.zeros(min(SPARSE * longest, int(arms.distinct.max())) + 1 if count else 0, np.int64),
        np.zeros((2, deepest), np.int64),
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
        used = _sorted(arms.codes, at[SOURCE] + first[source], sources, bits, many, places, places.words[0])
        _place_sources(arms, places, arm, dimension, first[source], used, bits)
        if arms.same[arm]:
            _place_targets(arms, places, arm, dimension, first, places.words[0], used, used, bits)
        else:
            asked = _sorted(arms.codes, at[TARGET] + first[target], targets, bits, many, places, places.words[1])
            _place_targets(arms, places, arm, dimension, first, places.words[1], asked, used, bits)
    return nest(places, arm, sources, used) if arms.kind[arm] == NESTED else used


@njit(**INSIDE)
def _sorted(codes: Any, begin: Any, count: Any, bits: Any, many: Any, places: Any, words: Any) -> Any:
    """Fill `words` with (code, item) of the items that have a code (out of `many`), in order; returns how many."""
    if many <= SPARSE * count:
        return _counted(codes, begin, count, bits, many, places.tally, words)
    used = 0
    for item in range(count):
        if codes[begin + item] >= 0:
            words[used] = (codes[begin + item] << bits) | item
            used += 1
    sort_words(words, used, places.words[2])
    return used


@njit(**INSIDE)
def _counted(codes: Any, begin: Any, count: Any, bits: Any, many: Any, tally: Any, words: Any) -> Any:
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
def _place_sources(arms: Any, places: Any, arm: Any, dimension: Any, first: Any, used: Any, bits: Any) -> None:
    """Earlier events in order of their codes: class after class, each a tree of its own."""
    mask = (np.int64(1) << bits) - 1
    words, classes = places.words[0], arms.class_at[arm, SOURCE]
    begin = 0
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
    arms: Any, places: Any, arm: Any, dimension: Any, first: Any, asking: Any, asked: Any, used: Any, bits: Any
) -> None:
    """Later events in order of their codes, beside the earlier ones: how many of their class come before them."""
    words, mask = places.words[0], (np.int64(1) << bits) - 1
    mine = arms.class_at[arm, TARGET] + first[arms.target[arm]]
    theirs = arms.class_at[arm, SOURCE] + first[arms.source[arm]]
    one_class, strict = arms.class_at[arm, SOURCE] < 0, arms.strict[arm, dimension]
    passed = 0
    for at in range(asked):
        item, code = asking[at] & mask, asking[at] >> bits
        while passed < used and (words[passed] >> bits) + strict <= code:
            passed += 1
        if passed > 0:
            last = words[passed - 1] & mask
            if one_class:
                places.prefix[arm, dimension, item] = passed
            elif arms.classes[mine + item] == arms.classes[theirs + last]:
                places.tree[arm, item] = places.begin[arm, last]
                places.prefix[arm, dimension, item] = passed - places.begin[arm, last]


@operation
def nest(places: Places, arm: int, sources: int, used: int) -> int:
    """Arrange the nested trees of every class, one after another; returns how many cells they take."""
    raise NotImplementedError


@implements(nest, INSIDE)
def _nest(places: Any, arm: Any, sources: Any, used: Any) -> Any:
    def plain(places: Any, arm: Any, sources: Any, used: Any) -> Any:
        return used

    def nested(places: Any, arm: Any, sources: Any, used: Any) -> Any:
        outer, filled = places.scratch[0], places.scratch[1]
        for item in range(sources):
            if places.place[arm, 0, item] >= 0:
                outer[places.begin[arm, item] + places.place[arm, 1, item]] = places.place[arm, 0, item]
        cells, begin = 0, 0
        while begin < used:
            count = places.size[arm, begin]
            places.deep[arm, begin] = cells
            tree = outer[begin : begin + count]
            arrange(InnerTrees(places.ranks, places.begins), places.base[arm] + cells, tree, count, filled)
            cells += places.begins[count]
            begin += count
        return cells

    return plain if lacks(places, "ranks") else nested


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
            insert_deep(places, arm, item, base, begin, count, place, nodes, values, cell)


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
        gather_deep(places, arm, item, base, nodes, values, cell)


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
            erase_deep(places, arm, item, base, begin, count, place, nodes)


# -------------------------------------------------------------------------------------------- in nested trees


@operation
def insert_deep(
    places: Places, arm: int, item: int, base: int, begin: int, count: int, place: int, nodes: Cells, values: Cells,
    cell: int,
) -> None:  # fmt: skip
    """As `insert_item`, into the nested tree at `begin`."""


@implements(insert_deep, INSIDE)
def _insert_deep(
    places: Any, arm: Any, item: Any, base: Any, begin: Any, count: Any, place: Any, nodes: Any, values: Any, cell: Any
) -> Any:
    def plain(
        places: Any, arm: Any, item: Any, base: Any, begin: Any, count: Any, place: Any, nodes: Any, values: Any,
        cell: Any,
    ) -> None:  # fmt: skip
        pass

    def nested(
        places: Any, arm: Any, item: Any, base: Any, begin: Any, count: Any, place: Any, nodes: Any, values: Any,
        cell: Any,
    ) -> None:  # fmt: skip
        tree, second = base + places.deep[arm, begin], places.place[arm, 1, item]
        inner = InnerTrees(places.ranks, places.begins)
        insert_nested(nodes, tree, inner, count, place, second, values, cell)

    return plain if lacks(places, "ranks") else nested


@operation
def gather_deep(places: Places, arm: int, item: int, base: int, nodes: Cells, values: Cells, cell: int) -> None:
    """As `gather_item`, from a nested tree."""


@implements(gather_deep, INSIDE)
def _gather_deep(places: Any, arm: Any, item: Any, base: Any, nodes: Any, values: Any, cell: Any) -> Any:
    def plain(places: Any, arm: Any, item: Any, base: Any, nodes: Any, values: Any, cell: Any) -> None:
        pass

    def nested(places: Any, arm: Any, item: Any, base: Any, nodes: Any, values: Any, cell: Any) -> None:
        first, second = places.prefix[arm, 0, item], places.prefix[arm, 1, item]
        if first > 0 and second > 0:
            tree = base + places.deep[arm, places.tree[arm, item]]
            gather_nested(values, cell, nodes, tree, InnerTrees(places.ranks, places.begins), first, second)

    return plain if lacks(places, "ranks") else nested


@operation
def erase_deep(
    places: Places, arm: int, item: int, base: int, begin: int, count: int, place: int, nodes: Cells
) -> None:
    """As `erase_item`, in a nested tree."""


@implements(erase_deep, INSIDE)
def _erase_deep(places: Any, arm: Any, item: Any, base: Any, begin: Any, count: Any, place: Any, nodes: Any) -> Any:
    def plain(places: Any, arm: Any, item: Any, base: Any, begin: Any, count: Any, place: Any, nodes: Any) -> None:
        pass

    def nested(places: Any, arm: Any, item: Any, base: Any, begin: Any, count: Any, place: Any, nodes: Any) -> None:
        tree, second = base + places.deep[arm, begin], places.place[arm, 1, item]
        erase_nested(nodes, tree, InnerTrees(places.ranks, places.begins), count, place, second)

    return plain if lacks(places, "ranks") else nested
