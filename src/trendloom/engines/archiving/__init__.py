"""Queries and their rows on the way into an archive: what both engines share, and the way of the local one."""
