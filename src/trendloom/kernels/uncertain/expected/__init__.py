"""Aggregates over matches of imprecise times: what is to be expected on the average of all worlds, and the probability
that there is a match at all. Without finding a match.
"""
