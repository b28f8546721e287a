"""Measure the engines: `python -m benchmarks.run [--quick] [--only PART ...]`.

Every rate stands beside a baseline of the same run, and every answer is checked against another way to compute it. The
exit code is 1 if an answer is wrong or a check compared nothing, and, at full sizes, if a goal is not met.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.harness.parts import PARTS
from benchmarks.harness.report import Report
from trendloom.kernels.jit.interpreted import compiled_first


def main() -> None:
    parts = "\n".join(f"  {name:<14}{part.summary}" for name, part in PARTS.items())
    options = argparse.ArgumentParser(
        description=f"{__doc__}\nParts:\n{parts}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="fewer tries and events, minutes in all; no goals")
    options.add_argument("--only", nargs="+", choices=PARTS, default=tuple(PARTS), metavar="PART")
    options.add_argument("--output", type=Path, default=Path("benchmark-output/results.json"))
    chosen = options.parse_args()
    report = Report(with_goals=not chosen.quick)
    for name in chosen.only:
        PARTS[name].load()(report, quick=chosen.quick)
    report.show()
    report.write(chosen.output)
    if report.failures:
        sys.exit("\n".join(report.failures))


if __name__ == "__main__":
    with compiled_first():
        main()
