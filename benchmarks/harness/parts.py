"""The parts of a run: each names the module that measures it, which is imported only when the part is asked for.

So a part needs no package but its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from benchmarks.harness.report import Report


class Measure(Protocol):
    def __call__(self, report: Report, *, quick: bool = False) -> None: ...


@dataclass(frozen=True)
class Part:
    """`function` as `module:name` in this package; `summary`: one line of help; `needs`: foreign packages."""

    function: str
    summary: str
    needs: tuple[str, ...] = ()

    def load(self) -> Measure:
        """Import the module."""
        module, name = self.function.split(":")
        return cast(Measure, getattr(import_module(f"benchmarks.{module}"), name))


PARTS = {
    "rows": Part("matching.rows:measure_rows", "rows per match, local and on Spark"),
    "trends": Part("trends.trends:measure_trends", "complete trends and postponing beside the papers' algorithms"),
    "trends-spark": Part("trends.on_spark:measure_trends_on_spark", "complete trends over partitions on Spark"),
    "kernels": Part("aggregation.kernels:measure_aggregation", "aggregation on one core"),
    "growth": Part("aggregation.growth:measure_growth", "counts with one inequality on adjacent events"),
    "decorrelation": Part(
        "aggregation.decorrelation:measure_decorrelation", "counts around a NOT that depends on an event next to it"
    ),
    "local": Part("engines.end_to_end:measure_end_to_end", "aggregates end to end, and their memory"),
    "cores": Part("engines.cores:measure_cores", "one thread beside all cores"),
    "long": Part("aggregation.long_window:measure_long_window", "10⁸ events in a window"),
    "spark": Part("engines.on_spark:measure_spark", "aggregates on Spark, path by path"),
    "live": Part("engines.live:measure_live", "live streams, beside Flink"),
    "queries": Part("sharing.many_queries:measure_many_queries", "a workload beside its queries one by one"),
    "sharing": Part(
        "sharing.sweeps:measure_all_of_sharing",
        "workloads with parts in common, their optimizer, 1,000 queries on Spark",
    ),
    "unsafe": Part("matching.unsafe_tool:measure_unsafe_tool", "a nested query whose conditions keep tools apart"),
    "exists": Part("matching.exists:measure_exists", "projections of EXISTS beside the matches they are made of"),
    "nesting": Part("matching.nesting:measure_nesting", "nested sequences beside Algorithm 1 of NEEL+"),
    "shortcuts": Part("matching.short_cuts:measure_short_cuts", "values of other events that a query can do without"),
    "ranking": Part(
        "ranking.ranking:measure_ranking", "the k best matches beside listing all, Yen's algorithm and k-DSSP"
    ),
    "joins": Part(
        "ranking.rank_joins:measure_rank_joins", "rank joins by schedule, nonlinear preferences, queries with MERGE"
    ),
    "imprecise": Part(
        "imprecise.imprecise:measure_imprecise", "imprecise time beside points, passes and runs from any state"
    ),
    "explanation": Part(
        "diagnosis.explanation:measure_explanation", "features and rewards of a diagnosis beside plain loops"
    ),
    "diagnosing": Part(
        "diagnosis.diagnosing:measure_diagnosing", "diagnoses out of an archive and beside a live stream"
    ),
    "diagnosis": Part(
        "diagnosis.diagnosis:measure_diagnosis",
        "reasons of simulated anomalies beside other ways to explain them",
        ("sklearn",),
    ),
}
