"""Rewrite plans into ones that need less: rules in order, one rule per file, none may change an answer.

RULES turn one logical plan into another, COSTED_RULES do so by what is known of the stream; WORKLOAD_RULES turn a
workload into another, once its plans are optimized.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from trendloom.logical.plan import Plan, Workload
from trendloom.logical.statistics import UNKNOWN, Statistics
from trendloom.optimizer.count_in_pattern import count_in_pattern
from trendloom.optimizer.decorrelate_negations import decorrelate_negations
from trendloom.optimizer.evaluate_equal_negations_once import evaluate_equal_negations_once
from trendloom.optimizer.flatten_sequences import flatten_sequences
from trendloom.optimizer.look_up_equalities import look_up_equalities
from trendloom.optimizer.order_conditions import order_conditions
from trendloom.optimizer.prune_scan import scan_needed_columns, scan_pattern_types
from trendloom.optimizer.push_predicates import push_predicates_in, push_predicates_to_positions
from trendloom.optimizer.rewrite_running_extremes import rewrite_running_extremes
from trendloom.optimizer.share_scan import find_key_sets, read_once
from trendloom.optimizer.short_cut_predicates import short_cut_predicates
from trendloom.optimizer.split_by_equality import split_by_equality

Rule = Callable[[Plan], Plan]
CostedRule = Callable[[Plan, Statistics], Plan]

RULES: tuple[Rule, ...] = (
    rewrite_running_extremes,
    flatten_sequences,
    count_in_pattern,
    split_by_equality,
    push_predicates_to_positions,
    decorrelate_negations,
    evaluate_equal_negations_once,
    push_predicates_in,
    look_up_equalities,
    scan_pattern_types,
    scan_needed_columns,
)

COSTED_RULES: tuple[CostedRule, ...] = (
    order_conditions,
    short_cut_predicates,
)

WITHOUT_ORDER: tuple[Rule | CostedRule, ...] = (
    decorrelate_negations,
    evaluate_equal_negations_once,
    look_up_equalities,
    short_cut_predicates,
)
"""Rules for searches that know which of two events is first: where times are imprecise, plans do without them."""

WORKLOAD_RULES = (
    read_once,
    find_key_sets,
)


def optimize(plan: Plan, statistics: Statistics = UNKNOWN, without: Collection[Rule | CostedRule] = ()) -> Plan:
    """The plan after every rule but those it is to do `without`."""
    without = (*without, *not_for(plan))
    for rule in RULES:
        plan = plan if rule in without else rule(plan)
    for costed in COSTED_RULES:
        plan = plan if costed in without else costed(plan, statistics)
    return plan


def not_for(plan: Plan) -> tuple[Rule | CostedRule, ...]:
    """The rules that a plan does without."""
    return WITHOUT_ORDER if plan.schema.imprecise else ()


def optimize_workload(workload: Workload) -> Workload:
    """The workload of optimized plans after every rule for workloads."""
    for rule in WORKLOAD_RULES:
        workload = rule(workload)
    return workload


__all__ = [
    "COSTED_RULES",
    "RULES",
    "WORKLOAD_RULES",
    "CostedRule",
    "Rule",
    "not_for",
    "optimize",
    "optimize_workload",
]
