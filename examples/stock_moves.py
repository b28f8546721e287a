"""Make up moves of stock prices, the same at every run: a Rise or a Fall, and a Recovery where a price is back.

    python examples/stock_moves.py moves.parquet

Prices of every ticker go up and down by chance. A move of one per cent or more is an event: a Rise, a Fall, or a
Recovery, which is a rise to the price before the last fall or above. Each has time (s), ticker, sector, price, change
(in per cent). The queries of nesting.tql ask about these.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TICKERS, SECTORS, TICKS, SEED = 24, 6, 400, 7
LEAST = 1.0
"""Moves of less are not events, in per cent."""
MOVE = 0.9
"""The standard deviation of a move, in per cent."""
PAUSE = 20
"""Between two ticks of a ticker there are at most so many seconds."""


def stock_moves(tickers: int = TICKERS, sectors: int = SECTORS, ticks: int = TICKS, seed: int = SEED) -> pa.Table:
    """The moves of so many tickers in order of time."""
    random = np.random.default_rng(seed)
    change = random.normal(0, MOVE, (tickers, ticks)).round(2)
    price = (random.integers(20, 200, (tickers, 1)) * (1 + change / 100).cumprod(axis=1)).round(2)
    time = random.integers(1, PAUSE, (tickers, ticks)).cumsum(axis=1)
    type = np.where(change > 0, "Rise", "Fall").astype("<U8")
    before_fall = np.full(tickers, np.inf)  # by ticker: the price that a recovery must reach
    for tick in range(1, ticks):
        fell, back = change[:, tick] <= -LEAST, price[:, tick] >= before_fall
        type[back & (change[:, tick] >= LEAST), tick] = "Recovery"
        before_fall = np.where(fell, price[:, tick - 1], np.where(back, np.inf, before_fall))
    ticker = np.broadcast_to(np.arange(tickers)[:, None], change.shape)
    seen = np.abs(change) >= LEAST
    order = np.argsort(time[seen], kind="stable")
    names = np.array([f"T{number:03d}" for number in range(tickers)])
    columns = {"time": time, "type": type, "ticker": names[ticker], "sector": ticker % sectors, "price": price}
    return pa.table({name: column[seen][order] for name, column in (columns | {"change": change}).items()})


def main(target: str) -> None:
    events = stock_moves()
    pq.write_table(events, Path(target))
    print(f"{len(events):,} moves of {TICKERS} tickers: {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/stock_moves.py FILE.parquet")
    main(sys.argv[1])
