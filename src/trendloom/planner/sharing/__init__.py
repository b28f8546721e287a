"""Which queries of a workload share the aggregation of which parts of their patterns (SHARON).

Poppe, Rozet, Lei, Rundensteiner and Maier, "Sharon: Shared Online Event Sequence Aggregation". A pattern is a row of
letters; a segment that several queries have in common may be computed once for them, but two segments that overlap in a
query exclude each other there. The steps: `mine_segments` finds the segments, `benefit` says what each would save,
`conflict_graph` puts them and their conflicts together, `expand_candidates` adds segments for fewer queries, which
conflict less, `greedy` has a plan at once, `reduce_graph` removes what is certainly in or out of the best plan,
`bound_plans` says what no plan exceeds, `find_plan` finds the best one, all in the order of `choose_plan` and within
its `deadline`.
"""
