"""A live stream of alerts under the command: monitors of an archive over events as they come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trendloom.cli.archived import open_archive_at
from trendloom.cli.console import tell_note, warnings_told
from trendloom.cli.live import OpenedStream, Report, serve_opened, stream_name
from trendloom.cli.spark_output import spark_prints_into
from trendloom.diagnosis.monitors import Monitor, find_monitor
from trendloom.engines.spark.streaming.service import Service
from trendloom.engines.spark.streaming.settings import Setting
from trendloom.engines.spark.streaming.sources import EventSource, note_columns, open_source
from trendloom.engines.spark.streaming.targets import Target, check_folder
from trendloom.errors import OptionError
from trendloom.options import Options

if TYPE_CHECKING:
    from trendloom.archive import Archive


@dataclass(frozen=True)
class MonitorRequest:
    """Monitors that are to be watched: everything that can be known without Spark."""

    names: tuple[str, ...]
    archive: str
    source: EventSource
    target: Target
    options: Options
    service: Service
    watermark: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what is wrong before Spark starts."""
        Setting(self.watermark, 1)
        if (self.options.master or "").startswith("sc://"):
            raise OptionError(
                "monitors do not run through Spark Connect: the checkpoint is the server's",
                hint="run the command where the server is, with another --master",
            )
        if self.options.time_low is not None or self.options.time_error is not None:
            raise OptionError("monitors need precise times", hint="leave out the options of imprecise time")
        check_folder(self.service.checkpoint, "the checkpoint")


def serve_monitors(request: MonitorRequest, report: Report) -> None:
    """Serve alerts; ends when the stream is stopped, or when all is read (available-now)."""
    request.check()
    report.check()
    with warnings_told(quiet=report.quiet):
        archive = open_archive_at(request.archive)
        monitors = [find_monitor(archive, name) for name in dict.fromkeys(request.names)]
    if not report.quiet:
        for one in monitors:
            tell_note(f"{one.name}: {one.formula}")
        tell_note("starting Spark")
    with warnings_told(quiet=report.quiet), spark_prints_into(report.log, debug=report.debug):
        opened = _opened(request, archive, monitors)
    serve_opened(opened, stream_name(request.source, request.target), request.target, request.service, report)


def _opened(request: MonitorRequest, archive: Archive, monitors: list[Monitor]) -> OpenedStream:
    """The alerts over a stream of events; whole numbers count what they count in the archive, unless said otherwise."""
    from trendloom.engines.spark.archive.live_monitors import live_alerts
    from trendloom.spark import session

    options = replace(request.options, time_unit=request.options.time_unit or archive.unit)
    spark = session(options.master, name="trendloom stream", settings=dict(request.settings))
    checkpoint = request.service.checkpoint
    events = open_source(
        spark, request.source, times=options.time_columns, time_zone=options.time_zone, checkpoint=checkpoint
    )
    rows, frame = live_alerts(
        events, monitors, archive.axis, options, watermark=request.watermark, checkpoint=checkpoint
    )
    note_columns(events, checkpoint)
    return OpenedStream(rows, frame.schema, spark)
