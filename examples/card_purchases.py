"""Make up purchases by credit card, the same at every run: of five brands, at times that are all different.

    python examples/card_purchases.py purchases.parquet

Each event has time, type (BrandA to BrandE), ccid (the number of the card) and exp (dollars spent). The queries of
ranking.tql ask for those who spend most.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CARDS, PURCHASES, HOURS, SEED = 40, 2_400, 30, 3
BEGIN = np.datetime64("2024-11-29T06:00:00", "us")
BRANDS = np.array(["BrandA", "BrandB", "BrandC", "BrandD", "BrandE"])
USUAL = np.array([60, 45, 90, 120, 70])
"""What is mostly spent on a purchase, by brand."""


def card_purchases(cards: int = CARDS, purchases: int = PURCHASES, hours: int = HOURS, seed: int = SEED) -> pa.Table:
    """So many purchases in order of time, by so many cards."""
    random = np.random.default_rng(seed)
    time = BEGIN + np.sort(random.choice(hours * 3600, purchases, replace=False)).astype("timedelta64[s]")
    brand = random.integers(0, len(BRANDS), purchases)
    spent = np.ceil(USUAL[brand] * random.lognormal(0, 0.7, purchases)).astype(np.int64)
    card = 500 + random.integers(0, cards, purchases)
    return pa.table({"time": time, "type": BRANDS[brand], "ccid": card, "exp": spent})


def main(target: str) -> None:
    events = card_purchases()
    pq.write_table(events, Path(target))
    print(f"{len(events):,} purchases by {CARDS} cards: {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/card_purchases.py FILE.parquet")
    main(sys.argv[1])
