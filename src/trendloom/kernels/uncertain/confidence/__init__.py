"""How likely a signature is a match, and when: exact dynamic programming over time points, no enumeration of worlds.

Three sums, from the plainest to the most general: events in order (`in_order`), with rivals that can lie in one gap
each (`quiet_gaps`), with rivals that can lie in several gaps or excuse each other (`sweep`).
"""
