"""Run physical plans: in one process (`local`) or on Spark (`spark`). What both do to a table of events is here."""
