"""Random queries over events whose times are intervals, few enough to try every world.

An event has bounds, or one time that is right up to an error: of its type, or of its own. Probabilities of points are
given for some. Precise events are among them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

ANY, NEXT = "skip-till-any-match", "skip-till-next-match"
FORMS = ("{t} {v}", "{t} {v}", "{t} {v}", "{t}+ {v}[]", "{t}+ {v}[]", "({t} {v})?", "{t}* {v}[]", "{t}{{1,2}} {v}[]")
COMPARISONS = ("<=", "<", ">=", "!=", "=")

Row = dict[str, Any]


@dataclass(frozen=True)
class ImpreciseKnobs:
    """`outputs`: trends, values, totals. `types`: of components and events; few make components overlap."""

    semantics: tuple[str, ...] = (ANY, NEXT)
    outputs: tuple[str, ...] = ("trends", "trends", "values")
    types: str = "AABBC"
    negation: bool = True
    repetition: bool = True
    conditions: bool = True
    most_worlds: int = 200
    most_events: int = 6
    forms: tuple[str, ...] = ("bounds", "bounds", "probabilities", "error", "by type", "column")  # of imprecision


@dataclass(frozen=True)
class ImpreciseCase:
    """A query, events, and the options that say how imprecise their times are."""

    query: str
    events: tuple[Row, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def table(self, rows: tuple[Row, ...] | None = None) -> pa.Table:
        """The events, or some of them."""
        found = self.events if rows is None else rows
        names = COLUMNS if "time_low" in self.options else {"time": pa.int64(), "error": pa.int64(), **COLUMNS}
        left_out = () if "time_low" in self.options else ("low", "high")
        schema = pa.schema([(name, kind) for name, kind in names.items() if name not in left_out])
        return pa.Table.from_pylist([{n: row.get(n) for n in schema.names} for row in found], schema=schema)


COLUMNS = {
    "id": pa.int64(), "type": pa.string(), "low": pa.int64(), "high": pa.int64(), "x": pa.int64(), "k": pa.int64(),
    "g": pa.string(), "p": pa.list_(pa.float64()),
}  # fmt: skip


@st.composite
def imprecise_cases(draw: st.DrawFn, knobs: ImpreciseKnobs) -> ImpreciseCase:
    """A query and events that it is tried on."""
    semantics = draw(st.sampled_from(knobs.semantics))
    parts, variables = draw(_parts(knobs, semantics))
    count = draw(st.sampled_from([0, 0, 1, 1, 2])) if knobs.conditions else 0
    where = [draw(_conjuncts(variables, semantics)) for _ in range(count)]
    keys = draw(st.sampled_from([[], [], [], ["k"], ["g"], ["k", "g"]]))
    where += [f"[{', '.join(keys)}]"] if keys else []
    grain = draw(st.sampled_from([1, 1, 1, 2, 3]))
    output = draw(st.sampled_from(knobs.outputs))
    grouped = draw(st.sampled_from(["", "g"])) if output == "totals" else ""
    clauses = [
        f"RETURN {draw(_returned(output, variables, grouped))}",
        f"PATTERN SEQ({', '.join(parts)})",
        f"SEMANTICS {semantics}",
        *([f"WHERE {' AND '.join(where)}"] if where else []),
        *([f"GROUP BY {grouped}"] if grouped else []),
        *draw(_windows()),
        *([f"CONFIDENCE >= {draw(st.sampled_from(['0', '0.1', '0.25', '0.5', '1']))}"] if draw(st.booleans()) else []),
    ]
    options, events = draw(_streams(knobs, grain))
    return ImpreciseCase("\n".join(clauses), events, options)


# ---------------------------------------------------------------------------------------------------- queries


@st.composite
def _parts(draw: st.DrawFn, knobs: ImpreciseKnobs, semantics: str) -> tuple[list[str], list[tuple[str, bool]]]:
    """The components, with NOTs between them, and the variables with whether they repeat."""
    count = draw(st.sampled_from([1, 2, 2, 2, 3, 3]))
    parts: list[str] = []
    variables: list[tuple[str, bool]] = []
    for number in range(count):
        if knobs.negation and draw(st.integers(0, 4)) == 0:
            parts.append(draw(_nots(number, knobs, variables)))
        form = draw(st.sampled_from((FORMS if number else FORMS[:5]) if knobs.repetition else FORMS[:1]))
        parts.append(form.format(t=draw(st.sampled_from(knobs.types)), v=f"v{number}"))
        variables.append((f"v{number}", "[]" in form))
    if knobs.negation and draw(st.integers(0, 5)) == 0:
        parts.append(draw(_nots(count, knobs, variables)))
    return parts, variables


@st.composite
def _nots(draw: st.DrawFn, number: int, knobs: ImpreciseKnobs, before: list[tuple[str, bool]]) -> str:
    """A NOT of one event, perhaps with a condition on it, or on it and what is bound before."""
    name, kind = f"n{number}", draw(st.sampled_from(knobs.types))
    form = draw(st.integers(0, 4)) if knobs.conditions else 4
    if form == 0:
        return f"NOT ({kind} {name}: {name}.x > 1)"
    if form == 1 and before:
        other, repeats = draw(st.sampled_from(before))
        if not repeats:
            return f"NOT ({kind} {name}: {name}.x {draw(st.sampled_from(COMPARISONS))} {other}.x)"
    return f"NOT {kind} {name}"


@st.composite
def _conjuncts(draw: st.DrawFn, variables: list[tuple[str, bool]], semantics: str) -> str:
    operator = draw(st.sampled_from(COMPARISONS))
    (one, repeats), (other, _) = draw(st.sampled_from(variables)), draw(st.sampled_from(variables))
    forms = [f"{one}.x {operator} 2", f"{one}.x {operator} NEXT({other}).x"]
    if other != one:
        forms += [f"{one}.x {operator} {other}.x", f"{one}.x + 1 {operator} {other}.x"]
    if repeats:
        forms += [f"{one}[i].x {operator} {one}[i-1].x"]
    if repeats and semantics == ANY:
        forms += [f"{one}[first].x {operator} {one}[last].x", f"sum({one}[].x) > 2", f"count({one}[]) > 1"]
    return draw(st.sampled_from(forms))


@st.composite
def _returned(draw: st.DrawFn, output: str, variables: list[tuple[str, bool]], grouped: str) -> str:
    if output == "trends":
        return "TRENDS"
    name, repeats = draw(st.sampled_from(variables))
    if output == "values":
        return draw(st.sampled_from([f"{name}[last].x" if repeats else f"{name}.x", f"count({name}[])"]))
    listed = draw(st.lists(st.sampled_from(["COUNT(*)", f"COUNT({name})", f"SUM({name}.x)"]), min_size=1, unique=True))
    return ", ".join([*([grouped] if grouped else []), *listed])


@st.composite
def _windows(draw: st.DrawFn) -> list[str]:
    within = draw(st.sampled_from([0, 0, 2, 3, 4, 5, 6, 8]))
    if not within:
        return []
    slide = draw(st.sampled_from([0, 0, 0, 1, 2, 3, within, within + 1]))
    return [f"WITHIN {within}" + (f" SLIDE {slide}" if slide else "")]


# ---------------------------------------------------------------------------------------------------- streams


@st.composite
def _streams(draw: st.DrawFn, knobs: ImpreciseKnobs, grain: int) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """Options, and events that have few worlds."""
    options: dict[str, Any] = {"time_unit": "s"} | ({"time_grain": f"{grain} s"} if grain > 1 else {})
    form = draw(st.sampled_from(knobs.forms))
    if form in ("bounds", "probabilities"):
        options |= {"time_low": "low", "time_high": "high"}
        options |= {"time_probability": "p"} if form == "probabilities" else {}
    else:
        options["time_error"] = {"error": "1 s", "by type": "A=2s,B=1s", "column": "error"}[form]
    worlds, events = 1, []
    for number in range(draw(st.sampled_from([0, *[*range(2, knobs.most_events + 1)] * 3]))):
        kind = draw(st.sampled_from(knobs.types))
        radius = {"error": 1, "by type": {"A": 2, "B": 1}.get(kind, 0)}.get(form)
        radius = draw(st.sampled_from([0, 0, 1, 2])) if radius is None else radius
        time = draw(st.integers(-1, 7))
        low = time - radius if "time_error" in options else draw(st.integers(-1, 7))
        high = time + radius if "time_error" in options else low + draw(st.sampled_from([0, 1, 2, 2, 3, 4]))
        points = high // grain - low // grain + 1
        if worlds * points > knobs.most_worlds:
            continue
        worlds *= points
        event: Row = {
            "id": number, "type": kind, "time": time, "error": radius, "low": low, "high": high,
            "x": draw(st.sampled_from([0, 1, 2, 3, None])), "k": draw(st.sampled_from([1, 1, 1, 2, None])),
            "g": draw(st.sampled_from(["u", "u", "v"])),
        }  # fmt: skip
        if form == "probabilities" and draw(st.integers(0, 2)):
            weights = draw(st.lists(st.sampled_from([0, 1, 1, 2, 5]), min_size=points, max_size=points))
            event["p"] = [weight / sum(weights) for weight in weights] if sum(weights) else None
        events.append(event)
    return options, tuple(events)
