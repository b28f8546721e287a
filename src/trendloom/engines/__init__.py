"""Run queries: in one process (`local`), on Spark (`spark`), over live streams (`live`), by definition (`reference`).

What they have in common lies in rooms of its own: one columnar call (`columnar`), what becomes of its results (`rows`).
"""
