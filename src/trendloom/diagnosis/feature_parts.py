"""Features of a stream that is cut in time: each part makes what may become a feature, and all of them decide.

Which features a type has depends on all its events: a text column is a category if it has few values, and a column is
counted by itself if some event lacks it. So a part that does not see all windows keeps what decides (`TypeFacts`), and
gives out whatever may turn out to be a feature; `joined_in_time` adds up the facts and keeps what is one.

Every window lies in one part, so numbers are those of one process, bit by bit.
Cost: the features of the parts, copied once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trendloom.diagnosis.features import Feature, FeatureTable, Floats, Ticks

MOST_VALUES = 20
"""Of a text column, over all windows: with more it is no category."""


@dataclass(frozen=True)
class CategoryFacts:
    """The values of a text column (more than `MOST_VALUES` need not be known), and whether some event has none."""

    values: frozenset[str] = frozenset()
    lacking: bool = False

    def __add__(self, other: CategoryFacts) -> CategoryFacts:
        return CategoryFacts(self.values | other.values, self.lacking or other.lacking)


@dataclass(frozen=True)
class AttributeFacts:
    """How many events have a value of a numeric column, and of how many of these it is not left out."""

    present: int = 0
    told: int = 0

    def __add__(self, other: AttributeFacts) -> AttributeFacts:
        return AttributeFacts(self.present + other.present, self.told + other.told)


@dataclass(frozen=True)
class TypeFacts:
    """What decides which features a type has: how many events there are in the windows, of how many the number is not
    left out, and what is in their columns. `whole`: these are all events; otherwise what may be a feature is one."""

    events: int
    told: int
    categories: Mapping[str, CategoryFacts]
    attributes: dict[str, AttributeFacts]
    whole: bool = True

    def __add__(self, other: TypeFacts) -> TypeFacts:
        categories, attributes = dict(self.categories), dict(self.attributes)
        for name, category in other.categories.items():
            categories[name] = categories.get(name, CategoryFacts()) + category
        for name, attribute in other.attributes.items():
            attributes[name] = attributes.get(name, AttributeFacts()) + attribute
        return TypeFacts(self.events + other.events, self.told + other.told, categories, attributes)

    def is_category(self, name: str) -> bool:
        """Whether a column has few values. One value that all events have says nothing new."""
        known = self.categories[name]
        count = len(known.values)
        return 0 < count <= MOST_VALUES and (count > 1 or known.lacking or not self.whole)

    def is_counted(self, attribute: str | None) -> bool:
        """Whether the values of a column (None: events) are counted; a column that no event lacks is not."""
        if not self.whole:
            return True
        if attribute is None:
            return self.told > 0 or self.events == 0
        known = self.attributes[attribute]
        return known.told > 0 and known.present < self.events

    def has(self, feature: Feature) -> bool:
        """Whether a feature that a part gave out is one of the whole."""
        if feature.category is not None and not self.is_category(feature.category[0]):
            return False
        return feature.function != "count" or self.is_counted(feature.attribute)


@dataclass(frozen=True, eq=False)
class FeaturePart:
    """Features over some of the windows, and the facts of each type there."""

    table: FeatureTable
    facts: Mapping[str, TypeFacts]


def joined_in_time(parts: Sequence[FeaturePart], starts: Ticks, window: int) -> FeatureTable:
    """The features over all windows, of parts whose windows are apart and of types that may be apart, too."""
    facts: dict[str, TypeFacts] = {}
    for part in parts:
        for type_, known in part.facts.items():
            facts[type_] = facts[type_] + known if type_ in facts else TypeFacts(0, 0, {}, {}) + known
    rows: dict[Feature, Floats] = {}
    for part in parts:
        places = np.searchsorted(starts, part.table.starts)
        for feature, values in zip(part.table.features, part.table.values, strict=True):
            if feature not in rows and facts[feature.type].has(feature):
                rows[feature] = np.full(len(starts), 0.0 if feature.function == "count" else np.nan)
            if feature in rows:
                rows[feature][places] = values
    found = np.array(list(rows.values())) if rows else np.zeros((0, len(starts)))
    return FeatureTable(tuple(rows), window, starts, found)
