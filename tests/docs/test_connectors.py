"""The tables of sources and sinks in docs/command-line.md are those of the registries."""

from __future__ import annotations

from pathlib import Path

from trendloom.engines.spark.streaming.sinks import SINKS
from trendloom.engines.spark.streaming.sources import SOURCES

ROWS = [line for line in Path("docs/command-line.md").read_text().splitlines() if line.startswith("| `")]


def test_every_source_has_a_row() -> None:
    for source in SOURCES.classes().values():
        assert any(f"`{source.form}`" in row.split("|")[1] for row in ROWS), source.form


def test_rows_of_sinks_say_what_happens_to_a_batch_that_is_done_again() -> None:
    for sink in SINKS.classes().values():
        row = next((row for row in ROWS if row.startswith(f"| `{sink.form}` |")), "")
        assert sink.exactly_once in row, sink.form
