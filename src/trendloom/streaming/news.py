"""What there is to say of queries that joined a stream under way: from when on their answers are whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from trendloom.errors import QueryNote
from trendloom.model.schema import Schema
from trendloom.model.zone import zone_named
from trendloom.streaming.streaming_query import Flow


def news_of(flows: Iterable[Flow], reached: int | None) -> Iterator[QueryNote]:
    """A note for every query whose answers are not whole yet; `reached`: the watermark, microseconds since 1970."""
    for flow in flows:
        schema, whole_from = flow.physical.plan.schema, flow.whole_from
        if whole_from is not None and (reached is None or whole_from * schema.axis.tick > reached):
            moment = shown_moment(schema, whole_from)
            yield QueryNote(f"{named(flow)} is new: its answers are whole from {moment} on")


def named(flow: Flow) -> str:
    return f"query '{flow.name}'" if flow.name else "the query"


def shown_moment(schema: Schema, ticks: int) -> str:
    """A time of the stream as its users write it: a whole number, or a date and time in the zone of its column."""
    if not schema.axis.timestamp:
        return str(ticks)
    zone = schema.zone_of(schema.time)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(ticks * schema.axis.tick))
    local = moment.astimezone(zone_named(zone)).replace(tzinfo=None).isoformat(sep=" ")
    return f"{local.rstrip('0') if '.' in local else local} {zone}"
