"""Functions that other languages have: what to write here instead, with the names that stand in the query.

People ask for PREV, LAST, MEDIAN or NOW by habit. None of them is a function here, but most can be said otherwise.
"""

from __future__ import annotations

from trendloom.errors import did_you_mean
from trendloom.frontend import tree
from trendloom.frontend.tql.keywords import write_name
from trendloom.frontend.tql.printer import write_expression

_HABITS = {
    "prev previous lag": "write {variable}[i-1].{attribute}, and {variable}[i].{attribute} for the event after it",
    "lead following": "write NEXT({variable}).{attribute}",
    "first first_value": "write {variable}[first].{attribute}",
    "last last_value": "write {variable}[last].{attribute}",
    "mean average": "write avg({variable}[].{attribute}) of one match, or AVG({variable}.{attribute}) over all matches",
    "median mode percentile percentile_cont percentile_disc approx_percentile quantile std stdev stddev stddev_pop "
    "stddev_samp var variance var_pop var_samp corr listagg array_agg collect_list string_agg count_distinct":
        "there is count, min, max, sum and avg, as in avg({variable}[].{attribute}); for others, RETURN TRENDS and "
        "compute them from the events",
    "now current_timestamp current_date today getdate sysdate localtimestamp":
        "write a time as text, '2024-01-31 12:00:00': a query gives the same whenever it is run",
    "datediff timestampdiff date_diff timestamp_diff age": "subtract: b.time - a.time < 5 min",
    "match_number classifier":
        "RETURN TRENDS: every row is a match, and its events carry their variable in var",
}  # fmt: skip
_HINTS = {name: hint for names, hint in _HABITS.items() for name in names.split()}
_ATTRIBUTES = frozenset({"same", "equal", "equals", "partition", "partition_by", "key"})


def hint_for(call: tree.Call, functions: tuple[str, ...]) -> str | None:
    """The way out for a function that is not known."""
    first = call.arguments[0] if call.arguments else None
    if call.name in _ATTRIBUTES and isinstance(first, tree.Name):
        return f"write [{write_name(first.name, reserved_allowed=True)}]"
    if call.name not in _HINTS:
        return did_you_mean(call.name, functions)
    variable, attribute = "b", "x"
    if isinstance(first, tree.Reference):
        variable, attribute = write_name(first.variable), write_name(first.attribute or "x", reserved_allowed=True)
    elif isinstance(first, tree.Name):
        variable = write_expression(first)
    return _HINTS[call.name].format(variable=variable, attribute=attribute)
