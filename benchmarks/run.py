"""Measure the engines: `python -m benchmarks.run [--quick] [--only PART ...]`.

Every rate stands beside a baseline of the same run, and every answer is checked against another way to compute it.
Parts: `pattern_spec` (rows per match, local and Spark), `trends` (complete trends and postponing beside the papers'
algorithms, on one core; over partitions on Spark), `kernels` (aggregation on one core), `growth` (one inequality),
`decorrelation` (counts around a NOT that depends on an event next to it),
`local` (aggregates end to end, and their memory), `cores` (one thread beside all cores), `long` (10⁸ events in a
window), `spark` (aggregates, path by path), `live` (live streams, beside Flink), `queries` (a workload beside its
queries one by one), `sharing` (workloads whose queries have parts in common, beside A-Seq and others; the optimizer of
sharing; 1,000 queries on Spark), `unsafe` (a nested query whose conditions keep tools apart),
`exists` (remainders of EXISTS beside the matches they are made of),
`nesting` (nested sequences beside Algorithm 1 of NEEL+), `shortcuts` (what it is worth to know values beforehand),
`ranking` (the k best matches beside listing all, Yen's algorithm and k-DSSP), `joins` (rank joins by schedule, windows
that move, nonlinear preferences), `imprecise` (times that are not exact, beside points, passes, runs from any state and
the enumeration of points), `explanation` (features and rewards of a diagnosis beside plain loops),
`diagnosing` (a diagnosis out of an archive, and beside a live stream of many queries),
`diagnosis` (reasons of simulated anomalies beside other ways to explain them).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.aggregation import measure_aggregation
from benchmarks.cores import measure_cores
from benchmarks.decorrelation import measure_decorrelation
from benchmarks.diagnosing import measure_diagnosing
from benchmarks.diagnosis import measure_diagnosis
from benchmarks.end_to_end import measure_end_to_end
from benchmarks.exists import measure_exists
from benchmarks.explanation import measure_explanation
from benchmarks.growth import measure_growth
from benchmarks.imprecise import measure_imprecise
from benchmarks.live import measure_live
from benchmarks.long_window import measure_long_window
from benchmarks.many_queries import measure_many_queries
from benchmarks.nesting import measure_nesting
from benchmarks.on_spark import PATHS, drop_batches, measure_spark, run_all
from benchmarks.rank_joins import measure_rank_joins
from benchmarks.ranking import measure_ranking
from benchmarks.report import Report, Result, best_of
from benchmarks.sharing import measure_all_of_sharing
from benchmarks.short_cuts import measure_short_cuts
from benchmarks.trends import measure_trends
from benchmarks.trends_on_spark import measure_trends_on_spark
from benchmarks.unsafe_tool import measure_unsafe_tool
from benchmarks.workloads import RUN_TRENDS, RUN_VALUES, expected_runs, random_events, same_rows
from trendloom.kernels.jit.interpreted import compiled_first

KEYS = 1_000
MEASURES = {
    "kernels": measure_aggregation,
    "growth": measure_growth,
    "decorrelation": measure_decorrelation,
    "local": measure_end_to_end,
    "cores": measure_cores,
    "long": measure_long_window,
    "live": measure_live,
    "queries": measure_many_queries,
    "sharing": measure_all_of_sharing,
    "unsafe": measure_unsafe_tool,
    "exists": measure_exists,
    "nesting": measure_nesting,
    "shortcuts": measure_short_cuts,
    "ranking": measure_ranking,
    "joins": measure_rank_joins,
    "imprecise": measure_imprecise,
    "explanation": measure_explanation,
    "diagnosing": measure_diagnosing,
    "diagnosis": measure_diagnosis,
}
PARTS = ("detection", "trends", *MEASURES, "spark")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="fewer tries and events, minutes in all")
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options.add_argument("--paths", nargs="+", choices=PATHS, default=PATHS, help="paths through Spark to measure")
    options.add_argument("--events", type=int, default=5_000_000, help="events of the part `detection`")
    options.add_argument("--output", type=Path, default=Path("benchmark-output/results.json"))
    chosen = options.parse_args()
    report = Report()
    for part in chosen.only:
        if part == "detection":
            measure_detection(report, chosen.events, 3 if chosen.quick else 7)
        elif part == "trends":
            measure_trends(report, quick=chosen.quick)
            measure_trends_on_spark(report, quick=chosen.quick)
        elif part == "spark":
            measure_spark(report, quick=chosen.quick, paths=chosen.paths)
        else:
            MEASURES[part](report, quick=chosen.quick)
    report.show()
    report.write(chosen.output)


def measure_detection(report: Report, count: int, tries: int) -> None:
    """Rows per match, on the local engine and on Spark."""
    events = random_events(count, KEYS)
    expected = expected_runs(events)
    run_local(report, events, expected, tries)
    run_spark(report, events, expected, tries)


def run_local(report: Report, events: pa.Table, expected: pa.Table, tries: int) -> None:
    """SEQ(A, B+, C) under skip-till-next-match on the local engine, and how its cost grows with the events."""
    tl.run(RUN_VALUES, events.slice(0, 1_000))  # compile
    first = 0.0
    for share in (0.1, 0.2, 0.5):
        part = random_events(int(len(events) * share), KEYS)
        measured = measure_local(f"local, values, {share:.0%} of the events", part, expected_runs(part), tries)
        first = first or measured.rate
        report.add(measured.against("the first rate", first))
    measured = measure_local("local, values, unsorted Arrow table", events, expected, tries)
    report.add(measured.against("the first rate", first).with_goal("5 M events/s", measured.rate >= 5e6))
    seconds, found = best_of(1, lambda: tl.run(RUN_TRENDS, events))
    trends = Result("local, RETURN TRENDS", len(events), seconds, len(found), len(found) == len(expected))
    report.add(trends.against("values", measured.rate))


def measure_local(name: str, events: pa.Table, expected: pa.Table, tries: int) -> Result:
    seconds, found = best_of(tries, lambda: tl.run(RUN_VALUES, events))
    return Result(name, len(events), seconds, len(found), same_rows(found, expected))


def run_spark(report: Report, events: pa.Table, expected: pa.Table, tries: int) -> None:
    """The same query on Spark from Parquet, beside the bare pipeline: repartition, then drop every batch."""
    from trendloom.spark import detect, session

    spark = session("local[2]")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(events, f"{folder}/events.parquet", row_group_size=500_000)
        df = spark.read.parquet(f"{folder}/events.parquet")
        piped = df.repartition("key").mapInArrow(drop_batches, "id long")
        values, trends = detect(df, RUN_VALUES), detect(df, RUN_TRENDS)
        for job in (piped, values, trends):  # start workers, load and compile
            run_all(job)
        bare, _ = best_of(tries, lambda: run_all(piped))
        seconds, _ = best_of(tries, lambda: run_all(values))
        long, _ = best_of(1, lambda: run_all(trends))
        good = same_rows(values.toArrow(), expected)
        counted = trends.count() == len(expected)
    spark.stop()
    base = Result("spark local[2], repartition and drop", len(events), bare, 0, False)
    report.add(base)
    measured = Result("spark local[2], values, from Parquet", len(events), seconds, len(expected), good)
    report.add(measured.against("repartition and drop", base.rate).with_goal("0.7 of it", bare / seconds >= 0.7))
    measured = Result("spark local[2], RETURN TRENDS", len(events), long, len(expected), counted)
    report.add(measured.against("repartition and drop", base.rate))


if __name__ == "__main__":
    with compiled_first():
        main()
