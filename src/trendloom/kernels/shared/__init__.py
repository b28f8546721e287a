"""Many queries in one sweep: prefixes that patterns have in common are counted once."""
