"""Random queries and events with imprecise times, small enough to try every world."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.unit.kernels.uncertain.worlds_by_hand import ImpreciseCase, Row

ANY, NEXT = "skip-till-any-match", "skip-till-next-match"
ONE, SOME = "{t} {v}", "{t}+ {v}[]"
FORMS = (ONE, ONE, SOME, SOME, "({t} {v})?", "{t}* {v}[]", "{t}{{1,2}} {v}[]", "{t}{{2,}} {v}[]")


@st.composite
def cases_of(draw: st.DrawFn, clauses: str, *, most_worlds: int = 120) -> ImpreciseCase:
    """Events for a query, its window left to chance."""
    grain = draw(st.sampled_from([1, 1, 2]))
    query = "\n".join([clauses, *draw(_windows())])
    return ImpreciseCase(query, draw(_events(grain, most_worlds)), grain)


@st.composite
def imprecise_cases(draw: st.DrawFn, semantics: str, *, negation: bool = True, most_worlds: int = 120) -> ImpreciseCase:
    """A query and events of at most so many worlds."""
    count = draw(st.sampled_from([1, 2, 2, 3, 3]))
    parts, variables = [], []
    for number in range(count):
        if negation and draw(st.integers(0, 3)) == 0:
            parts.append(_not(draw, number, variables))
        form, type_ = draw(st.sampled_from(FORMS if number else FORMS[:4])), draw(st.sampled_from("AAABBBC"))
        parts.append(form.format(t=type_, v=f"v{number}"))
        variables.append((f"v{number}", "[]" in form))
    if negation and draw(st.integers(0, 4)) == 0:
        parts.append(_not(draw, count, variables))
    where = [draw(_conjuncts(variables, semantics)) for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    if draw(st.integers(0, 3)) == 0:
        where.append("[k]")
    clauses = [f"PATTERN SEQ({', '.join(parts)})", f"SEMANTICS {semantics}"]
    if where:
        clauses.append(f"WHERE {' AND '.join(where)}")
    grain = draw(st.sampled_from([1, 1, 1, 2, 3]))
    clauses += draw(_windows())
    return ImpreciseCase("\n".join(clauses), draw(_events(grain, most_worlds)), grain)


def _not(draw: st.DrawFn, number: int, variables: list[tuple[str, bool]]) -> str:
    """A NOT of one event; at times with a condition on itself, or with what is bound before it."""
    name, type_ = f"n{number}", draw(st.sampled_from("ABC"))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return f"NOT ({type_} {name}: {name}.x > 1)"
    if kind == 1 and variables:
        other = draw(st.sampled_from(variables))[0]
        return f"NOT ({type_} {name}: {name}.x {draw(st.sampled_from(['<', '>=', '!=']))} {other}.x)"
    return f"NOT {type_} {name}"


@st.composite
def _conjuncts(draw: st.DrawFn, variables: list[tuple[str, bool]], semantics: str) -> str:
    operator = draw(st.sampled_from(["<=", "<", ">=", "!=", "="]))
    one, plural = draw(st.sampled_from(variables))
    other, _ = draw(st.sampled_from(variables))
    forms = [f"{one}.x {operator} 2"]
    if other != one:
        forms.append(f"{one}.x {operator} {other}.x")
    if plural:
        forms += [f"{one}[i].x {operator} {one}[i-1].x", f"{one}.x {operator} NEXT({one}).x"]
    if plural and semantics == ANY:
        forms += [f"{one}[first].x {operator} {one}[last].x", f"sum({one}[].x) > 2", f"count({one}[]) > 1"]
    return draw(st.sampled_from(forms))


@st.composite
def _windows(draw: st.DrawFn) -> list[str]:
    form = draw(st.sampled_from(["none", "bound", "bound", "slide"]))
    if form == "none":
        return []
    within = draw(st.sampled_from([2, 3, 4, 5, 6, 8]))
    if form == "bound":
        return [f"WITHIN {within}"]
    return [f"WITHIN {within} SLIDE {draw(st.sampled_from([1, 2, 3, within, within + 1]))}"]


@st.composite
def _events(draw: st.DrawFn, grain: int, most_worlds: int) -> tuple[Row, ...]:
    """Events, precise ones among them; some have probabilities of points, with holes."""
    events: list[Row] = []
    worlds = 1
    for number in range(draw(st.sampled_from([2, 3, 4, 4, 5, 5, 6]))):
        points = draw(st.sampled_from([1, 2, 2, 3, 3, 4]))
        if worlds * points > most_worlds:
            points = 1
        worlds *= points
        low = draw(st.integers(-1, 6)) * grain
        event: Row = {
            "id": number,
            "type": draw(st.sampled_from("AAABBBC")),
            "low": low,
            "high": low + (points - 1) * grain,
            "x": draw(st.sampled_from([0, 1, 2, 3, None])),
            "k": draw(st.sampled_from([1, 1, 1, 2])),
        }
        if points > 1 and draw(st.integers(0, 3)) == 0:
            inside = draw(st.lists(st.sampled_from([0, 1, 2]), min_size=points - 2, max_size=points - 2))
            event["masses"] = [1, *inside, 2]
        events.append(event)
    return tuple(events)
