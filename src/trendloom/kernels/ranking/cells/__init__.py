"""Best paths through pairs of state and event: for patterns whose steps depend on the two events they join."""
