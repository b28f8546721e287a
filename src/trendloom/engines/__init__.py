"""Run queries: in one process (`local`), on Spark (`spark`), as a live stream (`live`), by the definitions (`reference`).

What they have in common lies in rooms of its own: one columnar call (`columnar`), what becomes of its results (`rows`).
"""
