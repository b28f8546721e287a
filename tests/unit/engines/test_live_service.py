"""A stream that fails: what is tried again, how often, and what people read. The query stands in for Spark's."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest

from trendloom.engines.spark.errors import error_text, explained, is_lasting
from trendloom.engines.spark.streaming import service
from trendloom.engines.spark.streaming.service import Service, StreamWatch, serve
from trendloom.errors import DataError, OptionError, RunError, StateError, TrendloomError
from trendloom.streaming.statistics import Figures

PLAN = "\n=== Streaming Query ===\nLogical Plan: CHECKPOINT_ No space left on device"


@dataclass
class Query:
    """A query that has ended, well or with an error."""

    error: Exception | None = None
    id: str = "stand-in"
    isActive: bool = False
    lastProgress: None = None
    recentProgress: list[Any] = field(default_factory=list)

    def stop(self) -> None:
        pass

    def exception(self) -> Exception | None:
        return self.error


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[float]]]:
    """Serve queries that end with these errors, one after another; how many were started, and the pauses between."""

    def serve_them(*errors: Exception | None, retries: int = 3) -> tuple[int, list[float]]:
        left, pauses = list(errors), []
        monkeypatch.setattr(service, "start", lambda *_: Query(left.pop(0)))
        try:
            setting = Service("state", retries=retries, pause=0.001)
            serve(None, lambda *_: None, setting, Event(), StreamWatch(failed=lambda _, pause: pauses.append(pause)))  # type: ignore[arg-type]
        finally:
            serve_them.started = len(errors) - len(left)  # type: ignore[attr-defined]
        return len(errors) - len(left), pauses

    return serve_them


def test_a_failure_is_tried_again_with_growing_pauses(serving: Callable[..., Any]) -> None:
    assert serving(OSError("away"), OSError("away"), None) == (3, [0.001, 0.002])


def test_after_too_many_failures_the_error_says_how_often(serving: Callable[..., Any]) -> None:
    with pytest.raises(RunError, match=r"away \(tried 3 times\)"):
        serving(*[OSError("away")] * 9, retries=2)
    assert serving.started == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "aborted: [USER_RAISED_EXCEPTION] trendloom.errors.DataError: 2 events have no time\n SQLSTATE: P0001\n\tat x",
        "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: [1,x]",
        "Failed to read log file file:/state/offsets/3. Incomplete log file",
        "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file a.parquet.",
    ],
)
def test_what_would_fail_again_is_not_tried_again(serving: Callable[..., Any], text: str) -> None:
    with pytest.raises(TrendloomError) as raised:
        serving(RuntimeError(text), None)
    assert serving.started == 1  # type: ignore[attr-defined]
    assert "tried" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "kind", "parts"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), RunError, ("the disk is full", "make room")),
        (RuntimeError("java.io.IOException: No space left on device"), RunError, ("the disk is full",)),
        (RuntimeError("database or disk is full"), RunError, ("the disk is full",)),
        (RuntimeError("assertion failed" + PLAN), StateError, ("the checkpoint state cannot be read", "copy")),
        (RuntimeError("[CANNOT_LOAD_STATE_STORE.X] An error occurred"), StateError, ("the checkpoint state",)),
        (
            RuntimeError("[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] No."),
            StateError,
            ("the checkpoint state",),
        ),
        (RuntimeError("Failed to read log file file:/a/1. Incomplete log file"), StateError, ("the checkpoint state",)),
        (RuntimeError("[STREAMING_CHECKPOINT_LOG_WRITE_FAILURE.OFFSET_LOG] No."), RunError, ("the stream failed",)),
        (RuntimeError("This query does not support recovering from checkpoint location."), OptionError, ("memory",)),
        (
            RuntimeError("[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: [1,x]"),
            DataError,
            ("[1,x]", "late_to="),
        ),
        (RuntimeError("Some data may have been lost; set failOnDataLoss"), DataError, ("failOnDataLoss=false",)),
        (RuntimeError("java.io.FileNotFoundException: File 3.csv does not exist"), DataError, ("3.csv", "put it back")),
        (RuntimeError("who knows" + PLAN), RunError, ("the stream failed: who knows", "the same checkpoint=")),
        (OptionError("ours"), OptionError, ("ours",)),
    ],
)
def test_failures_in_our_words(error: Exception, kind: type[TrendloomError], parts: tuple[str, ...]) -> None:
    found = explained(error, "state")
    assert type(found) is kind
    assert "=== Streaming" not in str(found)
    for part in parts:
        assert part in str(found)


def test_a_cause_decides_by_its_name_not_by_the_words_around_it() -> None:
    from pyspark.errors import PySparkException, PySparkRuntimeError

    class Named(PySparkException):
        def getCondition(self) -> str:
            return "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"

    failed = PySparkRuntimeError("no word of it")
    failed._cause = Named("nor here")  # type: ignore[attr-defined]
    assert type(explained(failed, "state")) is StateError
    assert type(explained(RuntimeError("CANNOT_LOAD_STATE_STORE and MALFORMED_LOG are words"), "state")) is RunError


def test_a_disk_that_is_full_is_tried_again_whatever_the_folder_is_called(serving: Callable[..., Any]) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", "checkpoint/offsets/3")
    assert serving(error, None)[0] == 2


@pytest.mark.parametrize(
    ("error", "lasting"), [(StateError("of another query"), True), (RunError("the checkpoint is busy"), False)]
)
def test_classes_say_what_lasts(error: TrendloomError, lasting: bool) -> None:
    carried = explained(RuntimeError(f"[USER_RAISED_EXCEPTION] {error_text(error)} SQLSTATE: P0001"), "state")
    assert is_lasting(carried) is lasting


def test_the_last_cause_in_a_long_message_is_told() -> None:
    text = (
        "An error occurred while calling o12.start.\n"
        ": org.apache.spark.SparkException: Job aborted\n\tat a.b.C\n"
        "Caused by: java.io.IOException: [SOME_CLASS] the share is away\n\tat d.e.F"
    )
    assert explained(RuntimeError(text), "state").message == "the stream failed: the share is away"


def test_no_batch_begins_when_the_stream_is_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, given = Event(), []

    class Rows:
        _jdf = None

    def start(rows: Any, sink: Any, _: Service) -> Query:
        sink(rows, 0)
        stop.set()
        with pytest.raises(RunError, match="being stopped"):
            sink(rows, 1)
        return Query()

    monkeypatch.setattr(service, "start", start)
    serve(Rows(), lambda _, batch: given.append(batch), Service("state"), stop)  # type: ignore[arg-type]
    assert given == [0]


def test_a_stream_that_is_stopped_while_it_waits_ends_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stop = Event()
    monkeypatch.setattr(service, "start", lambda *_: Query(OSError("away")))
    setting = Service(str(tmp_path), pause=60.0)
    end = serve(None, lambda *_: None, setting, stop, StreamWatch(failed=lambda *_: stop.set()))  # type: ignore[arg-type]
    assert end.batches == 0


# ------------------------------------------------------------------------------------------- renewed workloads


class Renewing:
    """Asks for a restart at the first looks."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.given = 0

    def is_due(self, _: Figures) -> bool:
        self.left -= 1
        return self.left >= 0

    def rows_after_restart(self) -> Any:
        self.given += 1
        return f"rows {self.given}"


class Running(Query):
    """A query that ends when it is stopped."""

    status: ClassVar[dict[str, bool]] = {"isTriggerActive": False}

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def isActive(self) -> bool:  # type: ignore[override]
        self.looks -= 1
        return self.looks >= 0

    @isActive.setter
    def isActive(self, _: bool) -> None:
        pass


def test_a_workload_is_renewed_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(service, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(service, "start", lambda rows, *_: started.append(rows) or Running(5))
    serve("rows 0", lambda *_: None, Service("state"), Event(), restart=Renewing(2))  # type: ignore[arg-type]
    assert started == ["rows 0", "rows 1", "rows 2"]


def test_no_batch_begins_when_a_workload_is_to_be_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    gates: list[Any] = []
    monkeypatch.setattr(service, "LOOK_EVERY", 0.0)

    class Rows(str):
        _jdf = None

    class Ending(Running):
        def stop(self) -> None:
            """Spark has begun another batch meanwhile."""
            if len(gates) == 1:
                with pytest.raises(RunError, match="being stopped"):
                    gates[0](None, 1)
                self.error = RunError("the stream is being stopped")

    def start(_: Any, sink: Any, __: Service) -> Query:
        gates.append(sink)
        return Ending(5)

    monkeypatch.setattr(service, "start", start)
    given: list[int] = []
    serve(Rows("0"), lambda _, batch: given.append(batch), Service("state"), Event(), restart=Renewing(1))  # type: ignore[arg-type]
    assert len(gates) == 2
    gates[1](None, 1)
    assert given == [1]
