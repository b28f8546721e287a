"""The report of a soak: a page of tables and a picture."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from tests.soak.kills import Kill
from tests.soak.verdict import Verdict
from tests.soak.watch import HEAP, MEMORY, ROWS, STATE, Series

MIB = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """All that is known at the end."""

    minutes: float
    rate: int
    seed: int
    begin: float
    events: int
    late: int
    rows: dict[str, int]
    differences: dict[str, tuple[int, int]]
    late_differ: bool
    kills: list[Kill]
    batches: list[float]  # seconds
    verdicts: list[Verdict]

    @property
    def passed(self) -> bool:
        return not self.differences and not self.late_differ and all(verdict.flat for verdict in self.verdicts)


def write_report(folder: Path, outcome: Outcome, series: Series) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(page(outcome))
    draw(folder / "soak.png", outcome, series)


def page(outcome: Outcome) -> str:
    paragraphs = [
        f"# Soak: {outcome.minutes:g} minutes, {outcome.rate} events/s, {len(outcome.kills)} kills",
        f"A standalone cluster on a machine with {os.cpu_count()} cores: a master, two workers of one core and 1 GiB, "
        f"a driver. Seed {outcome.seed}. **{'Passed' if outcome.passed else 'FAILED'}.**",
        "![what was measured](soak.png)",
        "## Rows",
        f"{outcome.events} events on time, {outcome.late} late. Rows are compared one by one with the local engine's.",
        table(
            ["query", "rows", "lost", "double"],
            [[name, count, *outcome.differences.get(name, (0, 0))] for name, count in outcome.rows.items()],
        ),
        f"Late events in the side table: {'they DIFFER' if outcome.late_differ else 'all, once (compared for m)'}.",
        "## Kills",
        table(
            ["after (s)", "kind", "in batch", "batch done after (s)"],
            [[f"{k.at - outcome.begin:.0f}", k.kind, k.batch, f"{k.recovery:.1f}"] for k in outcome.kills],
        ),
        "## Batches",
        f"{len(outcome.batches)} batches, median {median(outcome.batches):.1f} s, "
        f"95 % below {quantiles(outcome.batches, n=20)[-1]:.1f} s.",
        "## Memory and state",
        "Upper quartiles of both halves of the run, without the first fifth.",
        table(["series", "first half", "second half", "ratio", "flat"], [verdict_row(one) for one in outcome.verdicts]),
    ]
    return "\n\n".join(paragraphs) + "\n"


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def verdict_row(verdict: Verdict) -> list[object]:
    size = 1 if verdict.name == ROWS else MIB
    unit = "" if size == 1 else " MiB"
    shown = [f"{value / size:,.1f}{unit}" for value in (verdict.first, verdict.second)]
    return [verdict.name, *shown, f"{verdict.growth:.2f}", "yes" if verdict.flat else "NO"]


def draw(path: Path, outcome: Outcome, series: Series) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = (("resident memory (MiB)", MEMORY), ("heap after collections (MiB)", HEAP), ("state (MiB)", STATE))
    figure, axes = plt.subplots(4, 1, figsize=(10, 12), sharex=True, layout="constrained")
    for axis, (title, names) in zip(axes, (*panels, (ROWS, (ROWS,))), strict=True):
        for name in names:
            points = series.get(name, [])
            size = 1 if name == ROWS else MIB
            minutes = [(at - outcome.begin) / 60 for at, _ in points]
            axis.plot(minutes, [value / size for _, value in points], ".-", markersize=2, linewidth=0.7, label=name)
        for one in outcome.kills:
            axis.axvline((one.at - outcome.begin) / 60, color="grey", linewidth=0.6, linestyle=":")
        axis.set_title(title, loc="left", fontsize=10)
        axis.set(xlim=(0, outcome.minutes), ylim=(0, None))
        axis.legend(fontsize=8, loc="center right")
    axes[-1].set_xlabel("minutes; dotted lines: kills")
    figure.savefig(path, dpi=110)
    plt.close(figure)
