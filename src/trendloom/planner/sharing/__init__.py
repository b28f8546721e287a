"""Which queries of a workload share the aggregation of which parts of their patterns (SHARON).

Poppe, Rozet, Lei, Rundensteiner and Maier, "Sharon: Shared Online Event Sequence Aggregation". A segment of steps that
several patterns have in common may be computed once for them, but two segments that overlap in a query exclude each
other there. `choose_plan` names the steps of the search, `groups` weighs what it finds against other ways.
"""
