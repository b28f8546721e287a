"""Make up a log of loan applications, the same at every run, with the activities of a real one.

    python examples/loan_log.py loans.parquet

The queries of loans.tql ask about it. Columns and names are those of the log of the BPI Challenge 2012 as events
(README.md); the applications were never made. An offer comes back, is validated by one or two employees, now and then
the file is incomplete and the customer is called, and in the end the application is approved or declined.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

APPLICATIONS, SEED, EMPLOYEES = 600, 2012, 12
BEGIN = np.datetime64("2011-10-01T08:00:00", "us")
DAYS = 160
VALIDATE, CALL = "W_Valideren_aanvraag", "W_Nabellen_incomplete_dossiers"

Row = dict[str, Any]


class _Application:
    """One application: its time goes on with every event."""

    def __init__(self, random: np.random.Generator, number: int) -> None:
        self.random, self.number = random, number
        self.amount = int(random.integers(1, 100)) * 500
        self.time = BEGIN + np.timedelta64(int(random.integers(0, DAYS * 86_400_000)), "ms")
        self.rows: list[Row] = []

    def log(self, type: str, lifecycle: str = "COMPLETE", resource: str | None = "112", *, wait: int = 3600) -> None:
        """Add an event up to `wait` seconds after the last; 0: at the same time."""
        self.time += np.timedelta64(int(self.random.integers(0, wait * 1000 + 1)), "ms")
        row = {"time": self.time, "type": type, "lifecycle": lifecycle, "resource": resource}
        self.rows.append(row | {"case_id": str(self.number), "amount": self.amount})

    def employee(self) -> str | None:
        """Somebody; now and then nobody was noted."""
        return None if self.random.random() < 0.05 else str(10_000 + int(self.random.integers(0, EMPLOYEES)))

    def work(self, type: str) -> None:
        self.log(type, "SCHEDULE")
        who = self.employee()
        self.log(type, "START", who, wait=86_400)
        self.log(type, "COMPLETE", who)

    def run(self) -> list[Row]:
        self.log("A_SUBMITTED")
        self.log("O_SENT")
        for _ in range(int(self.random.integers(1, 3))):
            self.log("O_SENT_BACK", resource=self.employee(), wait=5 * 86_400)
            for _ in range(int(self.random.integers(0, 3))):
                self.work(VALIDATE)
            while self.random.random() < 0.4:
                self.work(CALL)
                if self.random.random() < 0.8:
                    self.work(VALIDATE)
        self.decide()
        return self.rows

    def decide(self) -> None:
        """Decisions are mostly made during a validation."""
        who = self.employee()
        if during := self.random.random() < 0.6:
            self.log(VALIDATE, "START", who)
        if self.random.random() < 0.7:
            self.log("A_APPROVED", resource=who)
            self.log("O_ACCEPTED", resource=who, wait=0)
        else:
            self.log("A_DECLINED", resource=who)
        if during:
            self.log(VALIDATE, "COMPLETE", who)


def made_up_log(applications: int = APPLICATIONS, seed: int = SEED) -> pa.Table:
    """The events of so many applications in order of time."""
    random = np.random.default_rng(seed)
    rows = [row for number in range(1, applications + 1) for row in _Application(random, 200_000 + number).run()]
    rows.sort(key=lambda row: row["time"])
    names = ("time", "type", "lifecycle", "case_id", "resource", "amount")
    return pa.table({name: pa.array([row[name] for row in rows]) for name in names})


def main(target: str) -> None:
    events = made_up_log()
    pq.write_table(events, Path(target))
    print(f"{len(events):,} events of {APPLICATIONS:,} applications: {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/loan_log.py FILE.parquet")
    main(sys.argv[1])
