"""Benchmarks measure compiled kernels; only `cold` is about what happens before they are."""

import os

os.environ.setdefault("TRENDLOOM_COMPILE", "always")
