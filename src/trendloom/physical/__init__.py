"""Decide which algorithm runs a query and why; the result is picklable and needs no plan to be executed."""
