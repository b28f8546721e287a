"""Looking at queries and events without asking for rows: CHECK, EXPLAIN, how far matching gets, statistics."""
