"""A logical plan as a tree of text, for people to compare with what they meant.

A `Branch` is a label, a text and branches below it; every kind of plan is shown as one, and `draw` lays it out. Long
lists are cut, so that the picture of a pattern with a thousand positions is still a picture.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from trendloom.expr import nodes
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend.tql.keywords import write_name, write_string
from trendloom.frontend.tql.printer import write_expression
from trendloom.logical.plan import Aggregation, Condition, Plan, Projection, Value
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Kind, Schema
from trendloom.model.selection import Semantics, Trends
from trendloom.model.time import MICROSECONDS, TimeAxis, Window
from trendloom.pattern import algebra

MOST_BRANCHES = 24
"""So many branches of one parent are drawn; of more, the first ones and how many are left."""

SEMANTICS = {
    Semantics.ANY: "any later event that fits may come next",
    Semantics.NEXT: "the next event that fits comes next",
    Semantics.CONTIGUOUS: "the very next event of the partition must fit",
}
TRENDS = {
    Trends.ALL: "its events in time order",
    Trends.COMPLETE: "only matches that no other match contains",
    Trends.COLLAPSED: "matches with the same events outside Kleene variables together",
}
PARTS: dict[type[algebra.Pattern], str] = {
    algebra.Sequence: "SEQ",
    algebra.Kleene: "one or more",
    algebra.Round: "once",
    algebra.Maybe: "optional",
    algebra.Either: "OR",
    algebra.Both: "AND",
}


@dataclass(frozen=True)
class Branch:
    label: str
    text: str = ""
    below: tuple[Branch, ...] = ()


def draw(branch: Branch) -> list[str]:
    """The lines of a tree, texts of siblings in one column."""
    head = f"{branch.label}  {branch.text}".rstrip()
    return [head, *_draw_below(branch.below)]


def _draw_below(branches: Sequence[Branch]) -> Iterator[str]:
    shown = list(branches)
    if len(shown) > MOST_BRANCHES:
        shown = [*shown[: MOST_BRANCHES - 1], Branch(f"... {len(branches) - MOST_BRANCHES + 1} more")]
    width = max((len(branch.label) for branch in shown if branch.text), default=0)
    for number, branch in enumerate(shown):
        last = number == len(shown) - 1
        yield ("└─ " if last else "├─ ") + f"{branch.label:{width}}  {branch.text}".rstrip()
        yield from (("   " if last else "│  ") + line for line in _draw_below(branch.below))


# ------------------------------------------------------------------------------------------ the whole plan


def describe_logical(plan: Plan) -> Branch:
    """The tree of a bound query."""
    return Branch("Logical plan", below=tuple(_clauses(plan)))


def _clauses(plan: Plan) -> Iterator[Branch]:
    yield _output(plan)
    if plan.query.rank_by is not None and plan.ranking is not None:
        yield Branch("ranking", _ranking(plan))
    if plan.schema.imprecision is not None:
        yield Branch("time", f"imprecise: {_imprecision(plan.schema, plan.schema.imprecision)}")
    if plan.confidence is not None:
        yield Branch("confidence", f"at least {float(plan.confidence):g} of the probability of all worlds")
    yield Branch("window", _window(plan.window, plan.schema.axis))
    if plan.operand_windows:
        yield Branch("operands", below=tuple(_operand_windows(plan)))
    yield Branch("partition", _partition(plan))
    if plan.schema.order:
        yield Branch("order", f"events of equal time and partition by {', '.join(plan.schema.order)}")
    yield Branch("semantics", f"{plan.semantics.value}: {SEMANTICS[plan.semantics]}")
    yield Branch("pattern", below=(describe_pattern(plan.pattern),))
    if plan.conditions:
        yield Branch("conditions", below=tuple(describe_condition(condition) for condition in plan.conditions))
    yield Branch("scan", "every column, events of every type")


def _output(plan: Plan) -> Branch:
    output = plan.output
    hidden = f"; without {', '.join(sorted(plan.hidden))} (EXISTS)" if plan.hidden else ""
    if isinstance(output, Trends):
        return Branch("output", f"one row per match: {TRENDS[output]}{hidden}")
    values = tuple(_value(value) for value in output.values)
    if isinstance(output, Projection):
        return Branch("output", f"one row per match: values of the match{hidden}", values)
    having = (Branch("having", write_expression(plan.query.having)),) if plan.query.having is not None else ()
    what = "expected values" if plan.schema.imprecise else "aggregates"
    return Branch("output", f"{_aggregate_rows(plan)}: {what} over all matches{hidden}", (*values, *having))


def _imprecision(schema: Schema, how: Imprecision) -> str:
    """Where the possible times of an event lie, and how likely each is."""
    errors = [f"{show_duration(error, schema.axis)} for {name}" for name, error in how.by_type]
    if how.error or not errors:
        errors.append(show_duration(how.error, schema.axis) + (" for others" if errors else ""))
    if schema.bounds is not None:
        around = " to ".join(schema.bounds)
    else:
        around = f"{schema.time} ± {how.error_column or ', '.join(errors)}"
    likely = "all equally likely" if how.probability is None else f"as likely as {how.probability} says"
    return f"{around}, a point every {show_duration(how.grain, schema.axis)}, {likely}"


def _value(value: Value) -> Branch:
    return Branch(value.name, "kind not known without events" if value.kind is Kind.NULL else str(value.kind))


def _aggregate_rows(plan: Plan) -> str:
    per = [*(["window"] if plan.window.sliding else []), *plan.group_by]
    return f"one row per {' and '.join(per)}" if per else "one row"


def _ranking(plan: Plan) -> str:
    assert plan.ranking is not None
    whole = "of each window, all partitions together" if plan.ranking.overall else "of each window and partition"
    return f"the {plan.ranking.limit} with the {show_preference(plan)}, {whole}"


def show_preference(plan: Plan) -> str:
    """The score of a ranked query: `highest a.x + b.x`."""
    ranking, clause = plan.ranking, plan.query.rank_by
    assert ranking is not None
    assert clause is not None
    texts = [write_expression(preference) for preference in clause.preferences]
    score = f"{ranking.merge} of {', '.join(texts)}" if ranking.merge else texts[0]
    return f"{'highest' if ranking.descending else 'lowest'} {score}"


def _operand_windows(plan: Plan) -> Iterator[Branch]:
    """The operands with a WITHIN of their own: the variables they bind, and the bound on their times."""
    variable = {atom.position: atom.variable for atom in algebra.atoms(plan.pattern)}
    for operand in plan.operand_windows:
        names = ", ".join(dict.fromkeys(variable[position] for position in operand.positions))
        within = show_duration(operand.within, plan.schema.axis)
        rule = f"in the last {within} of the window" if plan.window.sliding else f"last minus first time < {within}"
        yield Branch(names, rule)


def _window(window: Window, axis: TimeAxis) -> str:
    if window.within is None:
        return "the whole stream"
    within = show_duration(window.within, axis)
    if window.slide is None:
        return f"last minus first time of a match < {within}"
    slide = show_duration(window.slide, axis)
    if window.slide == window.within:
        return f"[k · {slide}, (k + 1) · {slide}) for every whole k: tumbling"
    overlap = -(-window.within // window.slide)
    in_each = f"an event is in up to {overlap} windows" if overlap > 1 else "an event is in one window or none"
    return f"[k · {slide}, k · {slide} + {within}) for every whole k: {in_each}"


def _partition(plan: Plan) -> str:
    if not plan.partition:
        return "none: all events together"
    names = ", ".join(plan.partition)
    if isinstance(plan.output, Aggregation) and plan.group_by != plan.partition:
        return f"{names}; results per {', '.join(plan.group_by)}" if plan.group_by else f"{names}; one result for all"
    return names


# ------------------------------------------------------------------------------------ patterns, conditions


def describe_pattern(pattern: algebra.Pattern) -> Branch:
    """The pattern after repetitions were unrolled, with the numbers of its positions and NOTs."""
    if isinstance(pattern, algebra.Atom):
        return Branch(str(pattern.position), show_component(pattern.type, pattern.variable))
    label = f"NOT {pattern.scope}" if isinstance(pattern, algebra.Negation) else PARTS[type(pattern)]
    return Branch(label, below=tuple(map(describe_pattern, algebra.parts(pattern))))


def show_component(type_name: str, variable: str) -> str:
    return write_name(type_name) + ("" if variable == type_name else f" {write_name(variable)}")


def describe_condition(condition: Condition) -> Branch:
    """A conjunct, and for which events it must be true."""
    whose = f"matches of NOT {condition.scope}: " if condition.scope else ""
    rounds = ", in one round" if condition.part is not None else ""
    return Branch(condition.text, f"{whose}{_quantifier(condition.expr)}{rounds}")


def _quantifier(expr: nodes.Expr) -> str:
    shape = shape_of(expr)
    parts: list[str] = []
    if shape.pair is not None:
        parts.append(f"adjacent events of {shape.pair[0]} and {shape.pair[1]}")
    if shape.index is not None:
        parts.append(f"every event of {shape.index}{_looking_back(expr) if shape.looks_back else ''}")
    if shape.each:
        parts.append("every event of " + " and ".join(sorted(shape.each)))
    if shape.whole:
        parts.append(f"{' and '.join(sorted(shape.whole))} as a whole")
    return ", ".join(parts) or "once for all events"


def _looking_back(expr: nodes.Expr) -> str:
    everything = any(isinstance(node, nodes.Aggregate) and node.before for node in nodes.walk(expr))
    return f" from the second on, with {'all those' if everything else 'the one'} before it"


# ------------------------------------------------------------------------------------------- expressions


def show_duration(ticks: int | Fraction, axis: TimeAxis) -> str:
    """A number of ticks in the largest unit that holds it exactly."""
    length = ticks * axis.tick
    for unit in reversed(MICROSECONDS):
        if length % MICROSECONDS[unit] == 0:
            return f"{length // MICROSECONDS[unit]} {unit}"
    return f"{ticks} ticks"


def show_expression(expr: nodes.Expr, axis: TimeAxis) -> str:
    """A bound expression in the words of the language; operands that are not leaves stand in brackets."""
    match expr:
        case nodes.Constant():
            return _constant(expr, axis)
        case nodes.Attribute():
            return f"{_variable(expr)}.{write_name(expr.column, reserved_allowed=True)}"
        case nodes.Aggregate():
            index = "[..i-1]" if expr.before else "[]"
            column = "" if expr.column is None else "." + write_name(expr.column, reserved_allowed=True)
            return f"{expr.function}({expr.variable}{index}{column})"
        case nodes.Extent():
            return f"duration({expr.variable})"
        case nodes.Fold():
            return _fold(expr, axis)
        case nodes.Group():
            return write_name(expr.column, reserved_allowed=True)
        case nodes.Total():
            return expr.text
        case nodes.Negate():
            return f"-{_operand(expr.operand, axis)}"
        case nodes.Arithmetic() | nodes.Comparison():
            return f"{_operand(expr.left, axis)} {expr.operator} {_operand(expr.right, axis)}"
        case nodes.Junction():
            return f" {expr.operator.upper()} ".join(_operand(operand, axis) for operand in expr.operands)
        case nodes.Inverse():
            return f"NOT {_operand(expr.operand, axis)}"
        case nodes.NullTest():
            return f"{_operand(expr.operand, axis)} IS {'NOT ' if expr.negated else ''}NULL"
        case nodes.Wildcard():
            return f"{_operand(expr.operand, axis)} LIKE {write_string(expr.pattern)}"
        case nodes.Function():
            return f"{expr.name}({', '.join(show_expression(argument, axis) for argument in expr.arguments)})"


def _fold(fold: nodes.Fold, axis: TimeAxis) -> str:
    texts = [_part(part, axis) for part in fold.parts]
    return f" {fold.operator} ".join(texts) if fold.operator in "+*" else f"{fold.operator}({', '.join(texts)})"


def _part(part: nodes.Part, axis: TimeAxis) -> str:
    text = _operand(part.expr, axis)
    if not part.counts:
        return text
    count = f"count({part.variable}[])"
    return count if text == "1" else f"({text} * {count})"


def _operand(expr: nodes.Expr, axis: TimeAxis) -> str:
    text = show_expression(expr, axis)
    compound = isinstance(expr, nodes.Arithmetic | nodes.Junction | nodes.Inverse)
    compound |= isinstance(expr, nodes.Fold) and len(expr.parts) > 1 and expr.operator in "+*"
    return f"({text})" if compound else text


def _variable(attribute: nodes.Attribute) -> str:
    name, which = write_name(attribute.variable), attribute.which
    if which is nodes.Which.EACH:
        return name
    return f"NEXT({name})" if which is nodes.Which.NEXT else f"{name}[{which.value}]"


def _constant(constant: nodes.Constant, axis: TimeAxis) -> str:
    value = constant.value
    if constant.kind is Kind.TIME and isinstance(value, int):
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)
        return write_string(moment.isoformat(sep=" "))
    if constant.kind is Kind.DURATION and isinstance(value, int):
        return show_duration(value, axis)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Decimal):
        return format(value, "f")
    return write_string(value) if isinstance(value, str) else "NULL" if value is None else repr(value)


def describe_guard(plan: Plan, links: Sequence[nodes.Comparison], *, follows: bool) -> str:
    """How a NOT is decided that depends on one event next to it."""
    text = " and ".join(show_expression(link, plan.schema.axis) for link in links)
    side = "after" if follows else "before"
    if all(link.operator == "=" for link in links):
        return f"anti-join by {text} and time, for the event {side} it"
    return f"threshold by {text} for the event {side} it, found in order of values"
