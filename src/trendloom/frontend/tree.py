"""The syntax tree: a query as written, before names and types are resolved.

Nodes are frozen and compare by content; the place in the text (`span`) does not take part in equality, so that
`parse(write(tree)) == tree` can be stated. Spellings that mean the same share one tree: `Stock+ S[]` is `Stock S+`,
`!p` is `NOT p`, `p | q` is `OR(p, q)`, `p*` keeps its own node because people wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import MAX_PREC, Context, Decimal
from enum import Enum
from fractions import Fraction
from typing import Literal as Choice
from typing import TypeVar

from trendloom.errors import Span
from trendloom.model.selection import Semantics, Trends


@dataclass(frozen=True, kw_only=True)
class Node:
    span: Span | None = field(default=None, compare=False, repr=False)


# ------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Literal(Node):
    """A number (never negative), string or boolean as written; with a point or an exponent a number is a Decimal."""

    value: int | Decimal | str | bool


def canonical_number(value: Decimal) -> Decimal:
    """A number as all its spellings share it: 0.30 is 0.3. Digits that a double would lose are kept."""
    shortest = Decimal(repr(float(value)))
    return shortest if shortest == value else value.normalize(Context(prec=MAX_PREC))


@dataclass(frozen=True)
class DurationLiteral(Node):
    """`5 min`: `unit` is the short name (us ms s min h d)."""

    amount: Fraction
    unit: str


@dataclass(frozen=True)
class Name(Node):
    """A bare name: an attribute of the group or partition in RETURN."""

    name: str


class Index(Enum):
    """Which events of a variable are meant."""

    EACH = ""  # b.x
    NEXT = "next"  # NEXT(b).x
    CURRENT = "i"  # b[i].x
    PREVIOUS = "i-1"  # b[i-1].x
    FIRST = "first"  # b[first].x
    LAST = "last"  # b[last].x
    ALL = "all"  # b[].x, inside an aggregate
    BEFORE = "..i-1"  # b[..i-1].x, inside an aggregate


@dataclass(frozen=True)
class Reference(Node):
    """`variable[index].attribute`; attribute None where the events themselves are meant: `count(b[])`, `COUNT(E)`.

    `attribute_span` is the place of the attribute alone, so that an error can underline it.
    """

    variable: str
    index: Index
    attribute: str | None
    attribute_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Star(Node):
    """The `*` of COUNT(*)."""


@dataclass(frozen=True)
class Call(Node):
    """A function or aggregate; `name` is lower case."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Unary(Node):
    operator: Choice["-", "not"]
    operand: Expression


@dataclass(frozen=True)
class Binary(Node):
    """Arithmetic or comparison."""

    operator: Choice["+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">="]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Logical(Node):
    """`a AND b AND c`, flat: an operand of an AND is an AND only where brackets were written."""

    operator: Choice["and", "or"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class In(Node):
    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Between(Node):
    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True)
class IsNull(Node):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True)
class Like(Node):
    operand: Expression
    pattern: str


@dataclass(frozen=True)
class Equivalence(Node):
    """`[patient]`, `[sector, company]`."""

    attributes: tuple[str, ...]


Expression = (
    Literal | DurationLiteral | Name | Reference | Star | Call | Unary | Binary | Logical | In | Between | IsNull
    | Like | Equivalence
)  # fmt: skip

# ---------------------------------------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Event(Node):
    """`Stock`, `Stock s`, `(Stock s: s.price > 10)`. `variable` None: the type is the variable."""

    type: str
    variable: str | None = None
    predicate: Expression | None = None


@dataclass(frozen=True)
class Seq(Node):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Repeat(Node):
    """`p+` is (1, None) written '+', `p*` '*', `p?` '?', else braces: `{n}`, `{n,m}`, `{n,}`."""

    pattern: Pattern
    least: int
    most: int | None
    spelling: Choice["+", "*", "?", "{}"]


@dataclass(frozen=True)
class Not(Node):
    pattern: Pattern


@dataclass(frozen=True)
class Or(Node):
    """Two or more parts; `a OR b OR c` is flat, `OR(OR(a, b), c)` is nested."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class And(Node):
    """Two or more parts."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Exists(Node):
    variable: str
    pattern: Pattern


@dataclass(frozen=True)
class OperandWithin(Node):
    """`SEQ(A a, B b) WITHIN 5 min` as an operand of AND, OR or SEQ, or in brackets: a window of its own."""

    pattern: Pattern
    within: Length


Pattern = Event | Seq | Repeat | Not | Or | And | Exists | OperandWithin

# ----------------------------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class Item(Node):
    """One value of a RETURN list."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class Length(Node):
    """A duration of WITHIN or SLIDE: a plain number (`unit` None) or one with a unit."""

    amount: Fraction
    unit: str | None = None


@dataclass(frozen=True)
class Within(Node):
    within: Length
    slide: Length | None = None


@dataclass(frozen=True)
class Merge(Node):
    """`MERGE(avg, pref1, pref2)`."""

    function: Choice["avg", "min", "max", "sum"]
    preferences: tuple[Expression, ...]


@dataclass(frozen=True)
class RankBy(Node):
    """`overall`: the best of all partitions of a window together."""

    preference: Expression | Merge
    descending: bool
    limit: int
    overall: bool = False

    @property
    def preferences(self) -> tuple[Expression, ...]:
        """The one preference, or those of MERGE."""
        return self.preference.preferences if isinstance(self.preference, Merge) else (self.preference,)


@dataclass(frozen=True)
class Query(Node):
    """One query. `name` is set in a workload; `text` is what it was parsed from, for error messages."""

    pattern: Pattern
    returns: Trends | tuple[Item, ...] = Trends.ALL
    semantics: Semantics = Semantics.ANY
    where: Expression | None = None
    group_by: tuple[str, ...] = ()
    having: Expression | None = None
    within: Within | None = None
    rank_by: RankBy | None = None
    confidence: Fraction | None = None
    name: str | None = None
    text: str | None = field(default=None, compare=False, repr=False)
    spans: tuple[tuple[str, Span], ...] = field(default=(), compare=False, repr=False)

    def clause(self, keyword: str) -> Span | None:
        """Where a clause ('RETURN', 'GROUP BY', ...) begins."""
        return dict(self.spans).get(keyword)


# ------------------------------------------------------------------------------------------------- walks

NodeKind = TypeVar("NodeKind", bound=Node)


def parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """The direct parts of a pattern."""
    if isinstance(pattern, Event):
        return ()
    return pattern.parts if isinstance(pattern, Seq | Or | And) else (pattern.pattern,)


def walk(part: object) -> Iterator[Node]:
    """All nodes of a tree or of a tuple of trees, parents before their children."""
    if isinstance(part, tuple):
        for each in part:
            yield from walk(each)
    elif isinstance(part, Node):
        yield part
        for value in vars(part).values():
            yield from walk(value)


def nodes_of(part: object, kind: type[NodeKind]) -> Iterator[NodeKind]:
    """All nodes of a kind in a tree or in a tuple of trees."""
    return (node for node in walk(part) if isinstance(node, kind))


def attributes_of(part: object) -> Iterator[str]:
    """Every attribute that is named in a tree, GROUP BY included."""
    for node in walk(part):
        match node:
            case Query():
                yield from node.group_by
            case Reference(attribute=str(name)) | Name(name):
                yield name
            case Equivalence(attributes):
                yield from attributes
