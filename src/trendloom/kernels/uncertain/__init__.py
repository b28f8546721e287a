"""Patterns over events whose times lie somewhere in an interval.

After H. Zhang, *High-Performance Complex Event Processing for Decision Analytics*, chapter 3.
"""
