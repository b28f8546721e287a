from __future__ import annotations

import datetime
import io

import pyarrow as pa
from rich.console import Console

from trendloom.cli.output import MOST_ROWS, Preview, preview, show, show_match
from trendloom.engines.answers import answers
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Column, Kind, Schema
from trendloom.options import Options

PLAIN = Schema((Column("time", Kind.INT), Column("type", Kind.STRING)))
NAMED = Schema((*PLAIN.columns, Column("id", Kind.STRING)))


def event(variable: str, time: object, type: str = "T", **more: object) -> dict[str, object]:
    return {"time": time, "type": type, "var": variable, **more}


def printed(*previews: Preview, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    show(previews, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_events_are_called_by_their_id() -> None:
    events = [event("a", 1, id="a1"), event("b", 2, id="b2"), event("b", 5, id="b5"), event("c", 7, id="c7")]
    assert show_match(events, NAMED).plain == "a:a1 → b:b2,b5 → c:c7"


def test_events_without_id_are_called_by_type_and_time() -> None:
    assert show_match([event("a", 1, "A"), event("b", 2, "B")], PLAIN).plain == "a:A@1 → b:B@2"


def test_a_type_that_is_the_variable_is_not_said_twice() -> None:
    assert show_match([event("A", 1, "A"), event("A", 2, "A")], PLAIN).plain == "A:@1,@2"


def test_a_date_is_said_once() -> None:
    moments = ("2024-01-01 23:59", "2024-01-01 23:59:30", "2024-01-02")
    times = [datetime.datetime.fromisoformat(moment) for moment in moments]
    text = show_match([event("A", time, "A") for time in times], PLAIN).plain
    assert text == "A:@2024-01-01 23:59,@23:59:30,@2024-01-02 00:00"


def test_imprecise_times_are_ranges() -> None:
    schema = Schema(PLAIN.columns, imprecision=Imprecision("lo", "hi"))
    assert show_match([{"lo": 1, "hi": 4, "type": "A", "var": "a"}], schema).plain == "a:A@1..4"


def test_long_runs_are_cut_in_the_middle() -> None:
    events = [event("b", time, id=f"b{time}") for time in range(100)]
    assert show_match(events, NAMED).plain == "b:b0,b1,b2,b3, 95 more, b99"


def test_long_matches_are_cut_in_the_middle() -> None:
    events = [event("ab"[time % 2], time, id=str(time)) for time in range(100)]
    text = show_match(events, NAMED).plain
    assert text.startswith("a:0 → b:1 → ")
    assert text.endswith("a:10 → 88 more events → b:99")


def test_only_the_first_rows_are_kept_and_all_are_counted() -> None:
    table = pa.table({"time": range(1000), "type": ["A"] * 1000})
    (answer,) = answers("RETURN a.time PATTERN A a", table, Options())
    one = preview(answer)
    assert (one.rows, one.head["a.time"].to_pylist()) == (1000, list(range(MOST_ROWS)))
    assert printed(one)[-1] == f"1,000 rows, the first {MOST_ROWS} shown (--format jsonl gives all)"


def test_a_table_is_never_wider_than_the_terminal() -> None:
    head = pa.table({"name": ["x" * 90], "n": [10**15], "at": pa.array([0], pa.timestamp("us"))})
    lines = printed(Preview("q", PLAIN, head, 1), width=60)
    assert max(map(len, lines)) <= 60
    assert lines[-2].startswith("xxxx")
    assert "…" in lines[-2]
    assert "1000000000000000" in lines[-2]
    assert "1970-01-01 00:00" in lines[-2]


def test_square_brackets_are_no_markup() -> None:
    head = pa.table({"count(b[])": ["[red]x[/red]"]})
    text = "\n".join(printed(Preview(None, PLAIN, head, 1)))
    assert "count(b[])" in text
    assert "[red]x[/red]" in text


def test_times_are_shown_by_the_clocks_of_their_zone_which_the_heading_names() -> None:
    moments = pa.array([datetime.datetime(2050, 7, 1, 22, 30), None], pa.timestamp("us", "Europe/Paris"))
    others = {"utc": moments.cast(pa.timestamp("s", "UTC")), "plain": moments.cast(pa.timestamp("s"))}
    head = pa.table({"at": moments, **others})
    heading, _, row, *_ = printed(Preview(None, PLAIN, head, 2))
    assert heading.split() == ["at", "(Europe/Paris)", "utc", "(UTC)", "plain"]
    assert row.split() == ["2050-07-02", "00:30", "2050-07-01", "22:30", "2050-07-01", "22:30"]


def test_events_are_shown_by_the_clocks_of_their_zone() -> None:
    times = pa.array([datetime.datetime(2024, 7, 1, 22, 30)], pa.timestamp("us", "Europe/Paris"))
    (answer,) = answers("PATTERN A a", pa.table({"time": times, "type": ["A"]}), Options())
    heading, _, row, *_ = printed(preview(answer))
    assert (heading.strip(), row.strip()) == ("events (Europe/Paris)", "a:A@2024-07-02 00:30")
