"""The page: results of monitoring queries, diagnoses, a workbench. Needs the extra `dashboard` (Dash)."""
