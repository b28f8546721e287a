"""The demo: real server metrics, events made of them with Spark, and patterns found in those events.

    make demo                      # or: python examples/demo.py [FOLDER FOR THE RESULTS]

Three steps, each one ordinary Spark: window functions turn measurements into typed events, `trendloom.spark.detect`
turns events into matches, and the matches are DataFrames again, to be joined, counted and written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from trendloom.spark import detect, session
from trendloom.viz.query import draw_query_pattern, plan_of
from trendloom.viz.timeline import draw_matches

HERE = Path(__file__).resolve().parent
METRICS = HERE / "data" / "nab_metrics.parquet"
LABELS = HERE / "data" / "nab_windows.parquet"
WORKLOAD = HERE / "nab.tql"

FAR = 3.0  # standard deviations from the day before that are too many
DAY, HOUR = 288, 12  # in values: most series have one every five minutes
PICTURED = "rds_cpu_utilization_e47b3b"

console = Console(width=120, highlight=False)


# ------------------------------------------------------------------------------------------ from metrics to events


def clean(metrics: DataFrame) -> DataFrame:
    """Short names, and one value per series and moment (four of the series repeat a few times)."""
    named = metrics.withColumn("series", F.substring_index("series", "/", -1))
    return named.groupBy("series", "time").agg(F.avg("value").alias("value"))


def derive_events(measured: DataFrame) -> DataFrame:
    """Two events of every measurement: where it stands against the day before, and where it goes."""
    in_order = Window.partitionBy("series").orderBy("time")
    day_before = in_order.rowsBetween(-DAY - HOUR, -HOUR - 1)  # without the last hour, so that a jump stays visible
    usual = measured.withColumns(
        {
            "mean": F.avg("value").over(day_before),
            "spread": F.stddev_pop("value").over(day_before),
            "known": F.count("value").over(day_before),
            "rise": F.col("value") - F.lag("value").over(in_order),
        }
    )
    spread = F.greatest("spread", 0.02 * F.abs("mean"))  # a series that hardly moves is not restless at once
    distance = F.round((F.col("value") - F.col("mean")) / spread, 2)
    enough = (F.col("known") >= DAY // 2) & (spread > 0)
    judged = usual.withColumn("deviations", F.when(enough, distance).otherwise(0.0))
    out = F.abs("deviations") >= FAR
    still = F.lag(out, 1, False).over(in_order)
    level = F.when(out & still, "Out").when(out, "Jump").otherwise("Normal")
    move = F.when(F.col("rise") > 0, "Rise").when(F.col("rise") < 0, "Fall").otherwise("Steady")
    return (
        judged.withColumns({"level": level, "move": move})
        .withColumn("type", F.explode(F.array("level", "move")))
        .select("time", "type", "series", "value", "deviations")
    )


# --------------------------------------------------------------------------------------------------------- steps


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with step("Start Spark on this machine"):
        spark = session()
        say(f"Spark {spark.version}, {spark.sparkContext.master}")
    with step(f"Make events of {METRICS.relative_to(HERE.parent)} with window functions"):
        events = written(derive_events(clean(spark.read.parquet(str(METRICS)))), out / "events")
        show(events.groupBy("type").count().orderBy(F.desc("count")), "events by type", most=10)
    text = WORKLOAD.read_text()
    outages = search(events, text, "outages", out, F.asc("series"), F.asc("since"))
    judge(outages, spark.read.parquet(str(LABELS)))
    search(events, text, "climbs", out, F.desc("climbs"), F.asc("series"))
    search(events, text, "flapping", out, F.desc("ways"), F.asc("series"))
    search(events, text, "growing_spikes", out, F.desc(F.size("events")), F.asc("series"))
    echoes = search(events, text, "echoes", out, F.asc("at"), F.asc("first"))
    with step("Count the echoes, as any DataFrame"):
        show(echoes.groupBy("first", "second").count().orderBy(F.desc("count")), "pairs", most=4)
    with step("Draw the pattern and its matches"):
        draw(pq.read_table(out / "events"), detect(events, text, query="outage_events").toArrow(), text, out)
    farewell(out, time.perf_counter() - began)


def search(events: DataFrame, text: str, name: str, out: Path, *order: Column) -> DataFrame:
    """Run one query of the workload on Spark; its rows are written, then shown."""
    with step(f"Query {name}"):
        console.print(Syntax(query_text(text, name), "sql", background_color="default", padding=(0, 2)))
        rows = written(detect(events, text, query=name), out / name)
        show(rows.orderBy(*order), name)
    return rows


def judge(outages: DataFrame, labels: DataFrame) -> None:
    """How the outages compare with the anomalies that people have labelled: a join, as with any DataFrame."""
    with step("Compare the outages with the anomalies that NAB labels"):
        named = labels.withColumn("series", F.substring_index("series", "/", -1)).alias("l")
        overlap = (F.col("start") <= F.col("until")) & (F.col("since") <= F.col("end"))
        pairs = outages.alias("o").join(named, (F.col("o.series") == F.col("l.series")) & overlap)
        hits = pairs.select("o.series", "since").distinct().count()
        windows = pairs.select("l.series", "start").distinct().count()
        total, known = outages.count(), labels.count()
        say(f"{hits} of {total} outages touch a labelled window; {windows} of {known} labelled windows have one.")
        say("It is one pattern for 24 series of all kinds, and it knows only one kind of anomaly.")


def draw(events: pa.Table, matches: pa.Table, text: str, out: Path) -> None:
    """The pattern as positions and arrows; its matches over the curve of one series, with the labelled windows."""
    labels = pq.read_table(LABELS).to_pylist()
    spans = [(row["start"], row["end"]) for row in labels if row["series"].endswith(PICTURED)]
    curve = events.filter(pc.equal(events["series"], PICTURED))
    found = [row["events"] for row in matches.to_pylist() if row["series"] == PICTURED]
    shown = [
        [(event["time"], event["value"], f"{event['type']} {event['var']}") for event in match]
        for match in sorted(found, key=first)
    ]
    plan = plan_of(text, events, query="outage_events")
    title = "outages: out of the usual range for twelve values or more"
    for ending in ("svg", "png"):
        draw_query_pattern(plan, out / f"pattern.{ending}", title=title)
        draw_matches(
            curve, shown, out / f"matches.{ending}", value="value", spans=spans, spans_label="labelled anomaly",
            title=f"outages of {PICTURED}",
        )  # fmt: skip
    say(f"the matches in {PICTURED}: {len(shown)}")


def first(match: list[dict[str, Any]]) -> Any:
    return match[0]["time"]


# ------------------------------------------------------------------------------------------------- what you see


@contextmanager
def step(title: str) -> Iterator[None]:
    console.rule(f"[bold cyan]{title}[/]", align="left")
    began = time.perf_counter()
    yield
    console.print(f"[dim]{time.perf_counter() - began:.1f} s[/]\n", justify="right")


def say(text: str) -> None:
    console.print(f"  {text}")


def written(frame: DataFrame, folder: Path) -> DataFrame:
    """Write as Parquet and go on from the file, so that nothing is computed twice."""
    frame.write.mode("overwrite").parquet(str(folder))
    return frame.sparkSession.read.parquet(str(folder))


def show(frame: DataFrame, title: str, most: int = 5) -> None:
    total, rows = frame.count(), frame.limit(most).collect()
    say(f"[bold]{title}[/]: {total:,} row{'' if total == 1 else 's'}")
    table = Table()
    for name in frame.columns:
        table.add_column(name, justify="left" if dict(frame.dtypes)[name].startswith(("string", "array")) else "right")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    if total > len(rows):
        table.add_row("...", *[""] * (len(frame.columns) - 1))
    console.print(table)


def cell(value: Any) -> str:
    if isinstance(value, list):
        return " → ".join(f"{event['value']:.1f}" for event in value)
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def query_text(text: str, name: str) -> str:
    """The lines of one query of a workload file."""
    lines = text.split(f"QUERY {name}:\n", 1)[1].splitlines()
    end = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    return "\n".join(line.strip() for line in lines[:end])


def farewell(out: Path, seconds: float) -> None:
    console.rule("[bold cyan]Done[/]", align="left")
    say(f"{seconds:.0f} s in all. In {out}/:")
    for path in sorted(out.iterdir()):
        say(f"  {path.name}{'/' if path.is_dir() else ''}")
    say("\n  Next, change a query in examples/nab.tql and run it at once, without Spark:")
    say("  source .venv/env.sh")
    say(f"  trendloom run examples/nab.tql --events {out}/events --query flapping --engine local")
    say(f"  trendloom explain examples/nab.tql --events {out}/events --query climbs")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
