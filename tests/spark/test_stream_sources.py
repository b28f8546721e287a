"""Where live events come from: folders read as `trendloom run` reads files, messages of a broker, made-up events."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark import broker

import trendloom as tl
from trendloom.engines.spark.streaming.service import Service, StreamWatch, serve
from trendloom.engines.spark.streaming.sinks.console import to_call
from trendloom.engines.spark.streaming.sources import FILE, TEXT, kafka, note_columns, open_source, parse_source
from trendloom.errors import DataError, OptionError
from trendloom.io.read import read
from trendloom.spark import detect, events_of_kafka, metrics_of, to_jsonl

QUERY = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
MESSAGES = "time long, type string, k long, kafka_key string, kafka_partition int, kafka_offset long"

WorkloadDiff = Callable[..., pa.Table]


@pytest.fixture
def taken(tmp_path: Path) -> WorkloadDiff:
    """All rows that a streaming DataFrame has by now, in one go on one checkpoint."""

    def take(df: Any, checkpoint: str = "state") -> pa.Table:
        found: list[pa.Table] = []
        service = Service(str(tmp_path / checkpoint), trigger="available-now", retries=0)
        serve(df, to_call(lambda rows, _: found.append(rows)), service, Event())
        return pa.concat_tables(found)

    return take


def event(time: int, kind: str, key: int) -> dict[str, Any]:
    return {"time": time, "type": kind, "k": key}


# ------------------------------------------------------------------------------------------------ folders


CSV = 'time,type,name,x,when\n2024-01-01T00:00:01Z,A,"",1,2024-01-01\n2024-01-01 00:00:02,B,,2.5,\n'
JSON_LINES = '{"time": "2024-01-01T00:00:01Z", "type": "A", "x": 1}\n{"time": "2024-01-01T00:00:02Z", "type": "B"}\n'


@pytest.mark.parametrize(("ending", "text"), [("csv", CSV), ("jsonl", JSON_LINES)], ids=["csv", "jsonl"])
def test_text_is_read_as_run_reads_it(spark: Any, taken: WorkloadDiff, tmp_path: Path, ending: str, text: str) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / f"1.{ending}").write_text(text)
    (folder / f".2.{ending}").write_text("half a fi")
    events = open_source(spark, parse_source(str(folder)))
    assert dict(events.dtypes)["time"] == "string"  # parsed by the stream, as `run` does
    without_times = [name for name in events.columns if name != "time"]
    wanted = read(folder / f"1.{ending}").select(without_times).to_pylist()
    assert taken(events).select(without_times).to_pylist() == wanted


NOON = "2024-07-01 12:00:00"
IN_BERLIN = datetime(2024, 7, 1, 10, tzinfo=UTC)
ZONED = "at timestamp, type string"


LATER = "2024-07-09 12:00:00"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1.csv", f"at,type\n{NOON},A\n{LATER},Z\n"),
        ("1.jsonl", f'{{"at": "{NOON}", "type": "A"}}\n{{"at": "{LATER}", "type": "Z"}}\n'),
    ],
)
def test_live_times_in_text_are_of_the_given_zone(
    spark: Any, taken: WorkloadDiff, tmp_path: Path, name: str, text: str
) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / name).write_text(text)
    zone: dict[str, Any] = {"time": "at", "time_zone": "Europe/Berlin"}
    query = "RETURN a.at PATTERN A a WHERE a.at >= '2024-07-01 12:00:00' WITHIN 1 hour"
    source = parse_source(str(folder), schema=ZONED)
    events = open_source(spark, source, times=(zone["time"],), time_zone=zone["time_zone"])
    (live,) = taken(detect(events, query, watermark="0 seconds", buckets=1, **zone)).to_pylist()
    (once,) = tl.run(query, folder / name, **zone).to_pylist()
    assert live["a.at"].astimezone(UTC) == once["a.at"].astimezone(UTC) == IN_BERLIN


def test_times_in_messages_are_of_the_given_zone(spark: Any) -> None:
    message = [(b"k", f'{{"at": "{NOON}", "type": "A"}}'.encode())]
    messages = spark.createDataFrame(message, "key binary, value binary")
    found = events_of_kafka(messages, ZONED, time_zone="Europe/Berlin").selectExpr("unix_timestamp(at) AS at").first()
    assert found["at"] == IN_BERLIN.timestamp()


def test_a_live_stream_without_types_has_those_of_its_query(spark: Any, taken: WorkloadDiff, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "1.csv").write_text("time,x\n1,5\n2,7\n3,6\n")
    query = "RETURN a.x, b.x PATTERN SEQ(Sale a, Sale b) SEMANTICS contiguous WHERE a.x < b.x WITHIN 10"
    with pytest.warns(UserWarning, match="every one is taken for a .Sale."):
        found = detect(open_source(spark, parse_source(str(folder))), query, watermark="0 seconds", buckets=1)
    assert [list(row.values())[-2:] for row in taken(found).to_pylist()] == [[5, 7]]


def test_a_folder_of_parquet_a_few_files_at_a_time(spark: Any, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"time": [number], "type": ["A"]}), tmp_path / f"{number}.parquet")
    sizes: list[int] = []
    service = Service(str(tmp_path / "state"), trigger="available-now")
    source = parse_source(f"parquet:{tmp_path}", max_files=2)
    serve(open_source(spark, source), to_call(lambda rows, _: sizes.append(len(rows))), service, Event())
    assert sizes == [2, 1]


def test_what_cannot_be_read_stops_the_stream_or_has_no_time(spark: Any, taken: WorkloadDiff, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("time,type,x\n1,A,5\n2,B,many\n3,C,6\n")
    source = parse_source(str(tmp_path), schema="time long, type string, x long")
    with pytest.raises(DataError, match="an event cannot be read") as raised:
        taken(open_source(spark, source), "strict")
    assert 'late_to="FOLDER"' in str(raised.value)
    found = taken(open_source(spark, source, strict=False)).to_pylist()
    assert sorted(found, key=lambda row: row["time"] or 0) == [
        {"time": None, "type": None, "x": None, TEXT: "2,B,many", FILE: str(tmp_path / "1.csv")},
        {"time": 1, "type": "A", "x": 5, TEXT: None, FILE: None},
        {"time": 3, "type": "C", "x": 6, TEXT: None, FILE: None},
    ]


def test_json_that_cannot_be_read_keeps_its_text_and_file(spark: Any, taken: WorkloadDiff, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"time": 1, "type": "A"}\n{"time": 2, "type\n')
    source = parse_source(str(tmp_path), schema="time long, type string")
    found = taken(open_source(spark, source, strict=False)).to_pylist()
    assert [(row["time"], row[TEXT]) for row in found] == [(1, None), (None, '{"time": 2, "type')]
    assert [row[FILE] and row[FILE].endswith("/1.jsonl") for row in found] == [None, True]


def test_csv_is_read_by_name_and_what_cannot_be_read_is_put_aside(spark: Any, tmp_path: Path) -> None:
    """Files with the columns in another order, and one with broken lines; then a start with the noted columns."""
    folder, state, late = tmp_path / "days", tmp_path / "state", tmp_path / "late"
    folder.mkdir()
    (folder / "1.csv").write_text("time,type,k\n1,A,7\n2,A,8\n")
    options = {"watermark": "0 seconds", "buckets": 1, "late_to": str(late), "checkpoint": str(state)}
    found: list[dict[str, Any]] = []

    def go_on() -> Any:
        events = open_source(spark, parse_source(f"csv:{folder}"), strict=False, checkpoint=str(state))
        note_columns(events, str(state))
        service = Service(str(state), trigger="available-now", retries=0)
        return serve(
            detect(events, QUERY, **options), to_call(lambda rows, _: found.extend(rows.to_pylist())), service, Event()
        )

    go_on()
    (folder / "1.csv").unlink()
    (folder / "2.csv").write_text('k,more,type,time\n7,"x,y",B,3\nseven,,B,4\n8\n9,,Z,100\n')
    end = go_on()
    assert [pairs_of(row) for row in found] == [[7, (1, "A", "a"), (3, "B", "b")]]
    assert (end.events, end.untimed) == (4, 2)
    apart = pq.read_table(late).to_pylist()
    assert sorted(row[TEXT] for row in apart) == ["8", "seven,,B,4"]
    assert {row[FILE] for row in apart} == {str(folder / "2.csv")}


def test_live_parquet_of_pandas_has_nanoseconds(spark: Any, taken: WorkloadDiff, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime(["2024-01-01T00:00:00.000001", "1969-12-31T23:59:59.999999"], format="ISO8601")
    frame = pandas.DataFrame({"time": times, "type": ["A", "B"], "z": times.tz_localize("UTC")})
    frame.astype({"time": "datetime64[ns]"}).to_parquet(tmp_path / "1.parquet")
    frame.astype({"time": "datetime64[us]"}).to_parquet(tmp_path / "2.parquet")
    events = open_source(spark, parse_source(str(tmp_path)))
    assert dict(events.dtypes) == {"time": "timestamp_ntz", "type": "string", "z": "timestamp"}
    one = read(tmp_path / "1.parquet").to_pylist()
    assert sorted(map(str, taken(events)["time"].to_pylist())) == sorted(2 * [str(row["time"]) for row in one])


def test_files_that_come_later_do_not_change_the_columns(spark: Any, tmp_path: Path) -> None:
    state, folder = str(tmp_path / "state"), tmp_path / "days"
    folder.mkdir()
    (folder / "1.csv").write_text("time,type,x\n1,A,5\n")
    events = open_source(spark, parse_source(str(folder)), checkpoint=state)
    note_columns(events, state)
    (folder / "0.csv").write_text("time,type,x\n1,A,word\n")
    assert open_source(spark, parse_source(str(folder)), checkpoint=state).schema == events.schema
    with pytest.raises(DataError, match=r"column 'x' is text in .*0.csv, but numbers in .*1.csv"):
        open_source(spark, parse_source(str(folder)))


def test_a_schema_that_is_none(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="the schema cannot be read"):
        open_source(spark, parse_source(f"csv:{tmp_path}", schema="time, of course"))


def test_made_up_events_are_spread_over_types_and_keys(spark: Any, tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []
    stop = Event()

    def keep(rows: pa.Table, _: int) -> None:
        found.extend(rows.to_pylist())
        if len(found) >= 40:
            stop.set()

    serve(open_source(spark, parse_source("rate:50")), to_call(keep), Service(str(tmp_path / "state")), stop)
    found.sort(key=lambda row: row["value"])
    assert [row["value"] for row in found] == list(range(len(found)))
    assert "".join(row["type"] for row in found[:7]) == "ABCABCA"
    assert [row["key"] for row in found[:33:3]] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert all(found[0]["time"] <= row["time"] for row in found)


# -------------------------------------------------------------------------------------------------- Kafka


@pytest.fixture
def topic(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`topic(...)`: the events of a topic of the broker of these tests, whose folder is `log`."""
    broker.register(spark)
    monkeypatch.setattr(kafka, "CONNECTOR", broker.NAME)
    source = parse_source("kafka:127.0.0.1:9092/trades", schema=MESSAGES, options={"folder": str(tmp_path / "log")})
    return lambda strict=True: open_source(spark, source, strict=strict)


def test_without_the_connector_people_are_told_how_to_get_it(spark: Any) -> None:
    with pytest.raises(OptionError, match="connector to Kafka is not there") as raised:
        open_source(spark, parse_source("kafka:127.0.0.1:9092/trades", schema=MESSAGES))
    assert 'packages="org.apache.spark:spark-sql-kafka-0-10_2.13:' in str(raised.value)


def test_messages_become_events(topic: Callable[..., Any], taken: WorkloadDiff, tmp_path: Path) -> None:
    broker.produce(tmp_path / "log", 0, event(1, "A", 7), None, {**event(2, "B", 7), "more": [1]}, key="seven")
    broker.produce(tmp_path / "log", 3, {"type": "C"})
    assert [list(row.values()) for row in taken(topic()).to_pylist()] == [
        [1, "A", 7, "seven", 0, 0],
        [2, "B", 7, "seven", 0, 2],
        [None, "C", None, None, 3, 0],
    ]


def test_the_time_of_the_message_can_be_the_time(spark: Any) -> None:
    message = [(b"k", b'{"type": "A"}', 1_700_000_000)]
    messages = spark.createDataFrame(message, "key binary, value binary, at long")
    messages = messages.selectExpr("key", "value", "timestamp_seconds(at) AS timestamp")
    row = events_of_kafka(messages, "type string, kafka_timestamp timestamp").first()
    assert (row["type"], row["kafka_timestamp"].timestamp()) == ("A", 1_700_000_000)


def test_a_message_that_does_not_fit(topic: Callable[..., Any], taken: WorkloadDiff, tmp_path: Path) -> None:
    broker.produce(tmp_path / "log", 0, event(1, "A", 7), "nonsense", {"time": 2, "type": "B", "k": "seven"}, key="x")
    with pytest.raises(DataError, match="an event cannot be read"):
        taken(topic(), "strict")
    assert [list(row.values()) for row in taken(topic(strict=False)).to_pylist()] == [
        [1, "A", 7, "x", 0, 0, None],
        [None, None, None, "x", 0, 1, "nonsense"],
        [None, None, None, "x", 0, 2, '{"time": 2, "type": "B", "k": "seven"}'],
    ]


def test_a_topic_over_a_restart(topic: Callable[..., Any], tmp_path: Path) -> None:
    """The sink fails after it has written; the broker is asked for the same messages again, and rows are there once."""
    log, state, late, rows = (tmp_path / name for name in ("log", "state", "late", "rows"))
    sink, failed = to_jsonl(str(rows)), []

    def fails_once(batch: Any, number: int) -> None:
        sink(batch, number)
        if number == 1 and not failed:
            failed.append(number)
            raise OSError("the sink went away")

    def serve_until(rows: int) -> Any:
        """Serve until so many rows were given out."""
        options = {"watermark": "5 seconds", "buckets": 2, "late_to": str(late), "checkpoint": str(state)}
        stop = Event()
        watch = StreamWatch(lambda metrics: stop.set() if metrics.results >= rows else None)
        last_resort = Timer(60, stop.set)
        last_resort.start()
        found = serve(
            detect(topic(strict=False), QUERY, **options), fails_once, Service(str(state), pause=0.01), stop, watch
        )
        last_resort.cancel()
        return found

    events = [event(time, "AB"[time % 2], time // 4 % 2) for time in range(40)]
    for number, one in enumerate(events[:20]):
        broker.produce(log, number % 2, one)
    broker.produce(log, 0, "nonsense")
    first = serve_until(1)
    broker.produce(log, 0, *events[20:], event(1, "A", 0), event(1000, "Z", 0))
    wanted = tl.run(QUERY, pa.Table.from_pylist(events), engine="local").to_pylist()
    second = serve_until(len(wanted) - first.results)
    assert failed == [1]
    assert (first.untimed, second.late, second.events) == (1, 1, 22)
    found = [json.loads(line) for path in rows.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert sorted(map(pairs_of, found)) == sorted(map(pairs_of, wanted))
    assert len(wanted) > first.results > 10
    apart = pq.read_table(late).to_pylist()
    assert sorted((row["kafka_partition"], row["kafka_offset"], row["time"]) for row in apart if row["time"]) == [
        (0, 31, 1)
    ]


def pairs_of(row: dict[str, Any]) -> list[Any]:
    return [row["k"], *((one["time"], one["type"], one["var"]) for one in row["events"])]


def test_metrics_of_a_query_of_ones_own(spark: Any, tmp_path: Path) -> None:
    for number, time in enumerate((100, 10, 5000)):
        pq.write_table(pa.table({"time": [time], "type": ["A"], "k": [1]}), tmp_path / f"{number}.parquet")
        # Spark takes files by the time of their change
        os.utime(tmp_path / f"{number}.parquet", (10**9 + number, 10**9 + number))
    events = open_source(spark, parse_source(str(tmp_path), max_files=1))
    rows = detect(events, "PATTERN A a WITHIN 10", watermark="1 second", buckets=1)
    state = str(tmp_path / "state")
    query = rows.writeStream.option("checkpointLocation", state).format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    found = metrics_of(query)
    assert (found.events, found.late, found.results, found.watermark) == (3, 1, 1, 4999.0)
