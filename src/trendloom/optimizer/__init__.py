"""Rewrite plans into ones that need less: rules in order, one rule per file, none may change an answer.

RULES turn one logical plan into another, COSTED_RULES do so by what is known of the stream; WORKLOAD_RULES turn a
workload into another, once its plans are optimized.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

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
"""Rules for searches in which one of two events is surely first: not applied where times are imprecise."""

WORKLOAD_RULES = (
    read_once,
    find_key_sets,
)


def optimize(plan: Plan, statistics: Statistics = UNKNOWN, without: Collection[Rule | CostedRule] = ()) -> Plan:
    """The plan after every rule but those in `without`."""
    for _, rule in applied_rules(plan, statistics, without):
        plan = rule(plan)
    return plan


def applied_rules(
    plan: Plan, statistics: Statistics, without: Collection[Rule | CostedRule] = ()
) -> Iterator[tuple[str, Rule]]:
    """The rules for a plan in their order, by name."""
    left_out = (*without, *(WITHOUT_ORDER if plan.schema.imprecise else ()))
    yield from ((rule.__name__, rule) for rule in RULES if rule not in left_out)
    for costed in COSTED_RULES:
        if costed not in left_out:
            yield costed.__name__, partial(_with_statistics, costed, statistics)


def _with_statistics(rule: CostedRule, statistics: Statistics, plan: Plan) -> Plan:
    return rule(plan, statistics)


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
    "applied_rules",
    "optimize",
    "optimize_workload",
]
