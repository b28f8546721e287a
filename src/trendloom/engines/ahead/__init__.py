"""Compiling before it is needed: the usual queries, and those that are about to run."""
