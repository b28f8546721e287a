"""Which variable may be used where: the rules of scoping, and an error for each that quotes it.

A variable belongs to the innermost NOT around its component, or to the whole pattern. The rules are those of target and
free variables of D. Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 2:

- TV(NOT q) = ∅: nothing outside a NOT refers to what is bound inside it, so neither does RETURN, nor another NOT;
- FV(NOT q) = FV(q) − TV(q): inside a NOT, what the patterns around it bind may be used;
- TV(EXISTS x q) = TV(q) − {x}, FV(EXISTS x q) = FV(q) − {x}: no component outside an EXISTS refers to x.

WHERE stands beside the pattern, not in it: each of its conjuncts goes to the scopes that bind its variables.
"""

from __future__ import annotations

from trendloom.errors import BindError, Span, did_you_mean
from trendloom.frontend.tql.keywords import write_name
from trendloom.logical.bind.patterns import Attached, Bound


def usable_variables(bound: Bound, component: Attached) -> frozenset[str]:
    """What the predicate of a component may use: its NOT's variables and those around it, but not through an EXISTS."""
    return bound.visible(component.around.scope) - _behind_exists(bound, component)


def _behind_exists(bound: Bound, component: Attached) -> frozenset[str]:
    """The variables that are bound inside an EXISTS that names them and does not hold the component."""
    hidden = bound.named - component.around.exists
    if not hidden:
        return frozenset()
    pairs = zip(bound.atoms, bound.around, strict=True)
    return frozenset(hidden - {atom.variable for atom, around in pairs if atom.variable not in around.exists})


def error_of_component(bound: Bound, component: Attached, name: str, span: Span | None) -> BindError:
    """Why the predicate of a component may not use a variable."""
    scopes = bound.scopes_of(name)
    if not scopes:
        return unknown_variable(bound, name, span, usable_variables(bound, component))
    scope = component.around.scope
    if name in bound.visible(scope):
        return _through_exists(component, name, span)
    if any(bound.encloses(scope, other) for other in scopes):
        return _into_not(bound, component, name, span)
    return _of_another_not(component, name, span)


def _through_exists(component: Attached, name: str, span: Span | None) -> BindError:
    return BindError(
        f"'{name}' is bound by EXISTS: a component outside it, here '{component.variable}', cannot refer to it",
        span,
        hint=f"move the predicate to WHERE, or put both components into EXISTS {write_name(name)} (...)",
    )


def _into_not(bound: Bound, component: Attached, name: str, span: Span | None) -> BindError:
    owner = f"{write_name(bound.types_of[name])} {write_name(name)}"
    return BindError(
        f"'{name}' is a variable of a NOT: a component outside it, here '{component.variable}', cannot refer to it",
        span,
        hint=f"attach the predicate to the NOT's own component, as in ({owner}: ...), or move it to WHERE: "
        f"it then says which {name} must not happen",
    )


def _of_another_not(component: Attached, name: str, span: Span | None) -> BindError:
    return BindError(
        f"'{name}' is a variable of another NOT than '{component.variable}': "
        f"a NOT sees its own variables and those of the patterns around it",
        span,
        hint="each NOT is tested on its own: compare with a component outside of both, or put one NOT into the other",
    )


def error_of_result(bound: Bound, clause: str, name: str, span: Span | None, usable: frozenset[str]) -> BindError:
    """Why RETURN, HAVING or RANK BY may not use a variable, or the events of a type."""
    if not bound.scopes_of(name):
        of_type = sorted(atom.variable for atom in bound.atoms if atom.type == name)
        if not of_type or usable.intersection(of_type):
            return unknown_variable(bound, name, span, usable)
        return error_of_result(bound, clause, of_type[0], span, usable)
    if name in bound.hidden:
        return BindError(
            f"'{name}' is bound by EXISTS and is not part of the result, so {clause} cannot use it",
            span,
            hint="leave EXISTS out to use the variable; conditions on it may stand in WHERE",
        )
    return BindError(
        f"'{name}' is a variable of a NOT: there is no event of it in a match, so {clause} cannot use it",
        span,
        hint="leave it out, or make the component positive",
    )


def unknown_variable(bound: Bound, name: str, span: Span | None, usable: frozenset[str]) -> BindError:
    """The error of a name that no component has; the name of a type leads to its variable."""
    called = sorted({atom.variable for atom in bound.atoms if atom.type == name} & usable)
    hint = f"the variable of {name} is '{called[0]}'" if len(called) == 1 else did_you_mean(name, usable)
    return BindError(f"unknown variable '{name}'", span, hint=hint)


def error_of_conjunct(bound: Bound, used: frozenset[str], span: Span | None) -> BindError:
    """Why a conjunct of WHERE restricts nothing: it speaks of events that no match and no NOT holds together."""
    one, other = sorted(_apart(bound, used))
    return BindError(
        f"this conjunct uses variables of two NOTs of which neither encloses the other: '{one}' and '{other}'",
        span,
        hint="no match holds events of both, and each NOT is tested on its own; state a condition for each",
    )


def _apart(bound: Bound, used: frozenset[str]) -> tuple[str, str]:
    """Two of the variables that no scope sees together."""
    names = sorted(used)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            if not any({one, other} <= bound.visible(scope) for scope in bound.scopes):
                return one, other
    return names[0], names[-1]
