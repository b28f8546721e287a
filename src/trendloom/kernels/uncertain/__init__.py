"""Patterns over events whose times are only known to lie in an interval.

After H. Zhang, *High-Performance Complex Event Processing for Decision Analytics*, chapter 3.
"""
