"""Functions that other languages have: what to write here instead, with the names that stand in the query.

People ask for PREV, LAST, MEDIAN or NOW by habit. None of them is a function here, but most can be said otherwise.
"""

from __future__ import annotations

from trendloom.errors import did_you_mean
from trendloom.frontend import tree
from trendloom.frontend.tql.keywords import write_name
from trendloom.frontend.tql.printer import write_expression

_BEFORE = frozenset({"prev", "previous", "lag"})
_ENDS = {"first": "first", "first_value": "first", "last": "last", "last_value": "last"}
_AVERAGES = frozenset({"mean", "average"})
_STATISTICS = frozenset(
    {"median", "mode", "percentile", "percentile_cont", "percentile_disc", "approx_percentile", "quantile", "std",
     "stdev", "stddev", "stddev_pop", "stddev_samp", "var", "variance", "var_pop", "var_samp", "corr", "listagg",
     "array_agg", "collect_list", "string_agg", "count_distinct"}
)  # fmt: skip
_CLOCKS = frozenset({"now", "current_timestamp", "current_date", "today", "getdate", "sysdate", "localtimestamp"})
_DIFFERENCES = frozenset({"datediff", "timestampdiff", "date_diff", "timestamp_diff", "age"})
_OF_A_MATCH = frozenset({"match_number", "classifier"})
_ATTRIBUTES = frozenset({"same", "equal", "equals", "partition", "partition_by", "key"})


def hint_for(call: tree.Call, functions: tuple[str, ...]) -> str | None:
    """The way out for a function that is not known."""
    name, first = call.name, call.arguments[0] if call.arguments else None
    variable, attribute = _event(first)
    if name in _BEFORE:
        return f"write {variable}[i-1].{attribute}, and {variable}[i].{attribute} for the event after it"
    if name in ("lead", "following"):
        return f"write NEXT({variable}).{attribute}"
    if name in _ENDS:
        return f"write {variable}[{_ENDS[name]}].{attribute}"
    if name in _AVERAGES:
        return f"write avg({variable}[].{attribute}) of one match, or AVG({variable}.{attribute}) over all matches"
    if name in _STATISTICS:
        known = f"there is count, min, max, sum and avg, as in avg({variable}[].{attribute})"
        return f"{known}; for others, RETURN TRENDS and compute them from the events"
    if name in _CLOCKS:
        return "write a time as text, '2024-01-31 12:00:00': a query gives the same whenever it is run"
    if name in _DIFFERENCES:
        return "subtract: b.time - a.time < 5 min"
    if name in _OF_A_MATCH:
        return "RETURN TRENDS: every row is a match, and its events carry their variable in var"
    if name in _ATTRIBUTES and isinstance(first, tree.Name):
        return f"write [{write_name(first.name, reserved_allowed=True)}]"
    return did_you_mean(name, functions)


def _event(argument: tree.Expression | None) -> tuple[str, str]:
    """The variable and attribute of an argument, or some."""
    if isinstance(argument, tree.Reference):
        attribute = argument.attribute or "x"
        return write_name(argument.variable), write_name(attribute, reserved_allowed=True)
    return (write_expression(argument), "x") if isinstance(argument, tree.Name) else ("b", "x")
