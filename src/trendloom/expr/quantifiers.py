"""What a conjunct quantifies over: all algorithms need this of a condition before they can evaluate it.

A conjunct is true of a match if it is true for every choice of events that its quantifiers allow:

- `each`: the bare variables, one event of each;
- `index`: the variable counted by `[i]`, from its second event where the conjunct looks back (`b[i-1]`, `b[..i-1]`);
- `pair`: the two variables of NEXT, over adjacent events (the left one is then no longer in `each`);
- `whole`: variables read as a whole (`b[first]`, `b[last]`, `avg(b[].x)`, `duration(b)`): no choice at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Which, parts_of_folds, walk


@dataclass(frozen=True)
class Shape:
    each: frozenset[str]
    index: str | None
    looks_back: bool
    pair: tuple[str, str] | None
    whole: frozenset[str]

    @property
    def chosen(self) -> frozenset[str]:
        """The variables whose events are chosen one at a time."""
        return self.each | {name for name in (self.index, *(self.pair or ())) if name is not None}

    @property
    def variables(self) -> frozenset[str]:
        return self.chosen | self.whole

    @property
    def compares_events(self) -> bool:
        """Whether the conjunct reads nothing but one event of each of its variables."""
        return self.variables == self.each and self.index is None and not self.whole

    @property
    def local(self) -> str | None:
        """The variable, where the conjunct is about one event alone."""
        if self.whole or self.pair or self.looks_back or len(self.each) + (self.index is not None) != 1:
            return None
        return self.index if self.index is not None else next(iter(self.each))


def shape_of(expr: Expr) -> Shape:
    """The quantifiers of a bound conjunct."""
    leaves = [node for node in walk(expr) if isinstance(node, Attribute | Aggregate | Extent)]
    named = {which: {n.variable for n in leaves if isinstance(n, Attribute) and n.which is which} for which in Which}
    before = {n.variable for n in leaves if isinstance(n, Aggregate) and n.before}
    whole = {n.variable for n in leaves if isinstance(n, Extent) or (isinstance(n, Aggregate) and not n.before)}
    whole |= {part.variable for part in parts_of_folds(expr)}
    index = named[Which.CURRENT] | named[Which.PREVIOUS] | before
    each, pair = named[Which.EACH], None
    if named[Which.NEXT]:
        right = next(iter(named[Which.NEXT]))
        left = next(iter(each), right)
        each, pair = set(), (left, right)
    return Shape(
        each=frozenset(each),
        index=next(iter(index), None),
        looks_back=bool(named[Which.PREVIOUS] or before),
        pair=pair,
        whole=frozenset(whole | named[Which.FIRST] | named[Which.LAST]),
    )
