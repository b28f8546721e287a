"""Events in, results out: files and frames become tables, tables are checked as streams, rows are written."""
