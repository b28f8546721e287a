"""Apply a changed text of queries to a workload that runs: queries that can run are taken, the others are refused.

- A query that is refused under a name that runs leaves the one that runs in place.
- As long as a part of the text does not parse, no query is removed: its name may stand in that part, and a text that
  is being written ends anywhere.
- A workload never becomes empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trendloom.errors import OptionError, ParseError, QueryNote, TrendloomError
from trendloom.frontend.tql.parser import parse_blocks
from trendloom.frontend.tql.printer import write
from trendloom.frontend.tree import Query
from trendloom.model.schema import Schema
from trendloom.model.time import zone_named
from trendloom.streaming.streaming_query import StreamingQuery

Queries = tuple[Query, ...]
Check = Callable[[Queries], None]
"""Raises an error where queries cannot run as one workload."""


@dataclass(frozen=True)
class WorkloadDiff:
    """The workload to go on with, and what was refused."""

    queries: Queries
    refused: tuple[TrendloomError, ...] = ()

    def added_to(self, running: Queries) -> Queries:
        """The queries that are new, or not what they were."""
        known = {query.name: write(query) for query in running}
        return tuple(query for query in self.queries if known.get(query.name) != write(query))

    def removed_from(self, running: Queries) -> Queries:
        names = {query.name for query in self.queries}
        return tuple(query for query in running if query.name not in names)

    def changes(self, running: Queries) -> bool:
        return bool(self.added_to(running) or self.removed_from(running))


def take_queries(text: str, running: Queries, check: Check) -> WorkloadDiff:
    """The workload of a text, as far as it can run."""
    try:
        parsed = parse_blocks(text)
    except ParseError as error:
        return WorkloadDiff(running, (error,))
    wanted = {query.name: query for query in parsed.queries}
    staying = {query.name: query for query in running if query.name in wanted or not parsed.whole}
    changed = WorkloadDiff(parsed.queries).added_to(running)
    workload = staying | {query.name: query for query in changed}
    refused: list[TrendloomError] = [*parsed.errors]
    if changed and _refusal(tuple(workload.values()), check) is not None:
        workload, errors = _one_by_one(staying, changed, check)
        refused += errors
    if workload:
        return WorkloadDiff(tuple(workload.values()), tuple(refused))
    nothing = OptionError("no query of the text can run", hint="correct one; until then the queries that ran go on")
    return WorkloadDiff(running, (*refused, nothing))


def _one_by_one(
    staying: dict[str | None, Query], changed: Queries, check: Check
) -> tuple[dict[str | None, Query], list[TrendloomError]]:
    """The queries that stay, and of the changed ones those that fit them; why the others do not."""
    workload, refused = dict(staying), list[TrendloomError]()
    for query in changed:
        alone = _refusal((query,), check)
        tried = workload | {query.name: query}
        error = alone or _refusal(tuple(tried.values()), check)
        if error is None:
            workload = tried
        else:
            refused.append(error)
    return workload, refused


def _refusal(queries: Queries, check: Check) -> TrendloomError | None:
    try:
        check(queries)
    except TrendloomError as error:
        return error
    return None


# ------------------------------------------------------------- notes on queries that joined a stream under way


def news_of(streaming_queries: Iterable[StreamingQuery], reached: int | None) -> Iterator[QueryNote]:
    """A note for every query whose answers are not whole yet; `reached`: the watermark, microseconds since 1970."""
    for streaming_query in streaming_queries:
        schema, whole_from = streaming_query.physical.plan.schema, streaming_query.whole_from
        if whole_from is not None and (reached is None or whole_from * schema.axis.tick > reached):
            moment = shown_moment(schema, whole_from)
            yield QueryNote(f"{named(streaming_query)} is new: its answers are whole from {moment} on")


def named(streaming_query: StreamingQuery) -> str:
    return f"query '{streaming_query.name}'" if streaming_query.name else "the query"


def shown_moment(schema: Schema, ticks: int) -> str:
    """A time of the stream as its users write it: a whole number, or a date and time in the zone of its column."""
    if not schema.axis.timestamp:
        return str(ticks)
    zone = schema.zone_of(schema.time)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(ticks * schema.axis.tick))
    local = moment.astimezone(zone_named(zone)).replace(tzinfo=None).isoformat(sep=" ")
    return f"{local.rstrip('0') if '.' in local else local} {zone}"
