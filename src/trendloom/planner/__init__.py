"""Decide which algorithm runs a query and why: the first of the candidates, in their order, that takes the plan.

A physical plan holds the optimized logical plan, the kernel of that algorithm and the reason for it; it is frozen
and picklable.
"""
