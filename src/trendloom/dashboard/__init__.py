"""The page: see what monitoring queries gave, ask why, try queries. Needs the extra `dashboard` (Dash)."""
