"""What a checkpoint was made with: a small file beside Spark's own, so that a change that does not fit is refused.

A workload may gain queries, lose them, and change HAVING and what RETURN makes of the same aggregates. A query whose
pattern, predicates, groups or windows change is another query: under the old name it is refused, under a new one it
starts afresh. So does one that was taken out and is put back: it has missed events, and its *generation* shows it.
A query that joins when batches are done begins after all events that these have seen (`since`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.fs as fs

from trendloom.errors import OptionError, StateError
from trendloom.io.files import place
from trendloom.model.time import TimeAxis
from trendloom.streaming.streaming_query import StreamingQuery, as_before_rules
from trendloom.streaming.workload_diff import named

# How far a stream is, by the notes that Spark keeps of batches that are done: the watermark after the last of them.
#
# Spark's watermark is the greatest time seen so far, in whole milliseconds, less the delay. So all events that earlier
# batches have seen lie before the watermark, plus the delay, plus one millisecond.


COMMITS = "commits"
WATERMARK = "nextBatchWatermarkMs"


def watermark_after(checkpoint: str) -> int | None:
    """The watermark for the next batch, in milliseconds since 1970; None: no batch is done."""
    system, folder = place(checkpoint)
    found = system.get_file_info(fs.FileSelector(f"{folder}/{COMMITS}", allow_not_found=True))
    done = [info for info in found if info.type is fs.FileType.File and info.base_name.isdecimal()]
    if not done:
        return None
    newest = max(done, key=lambda info: int(info.base_name))
    try:
        with system.open_input_stream(newest.path) as source:
            _version, told = source.read().decode().split("\n", 1)
        return max(int(json.loads(told)[WATERMARK]), 0)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"the checkpoint cannot be read: {newest.path}: {error}",
            hint="put back a copy of the whole folder, or give a new checkpoint, which begins from the start",
        ) from None


def first_unseen(axis: TimeAxis, watermark: int, delay: int) -> int:
    """The first tick later than all events that batches have seen; watermark and delay in milliseconds."""
    return -(-(watermark + delay + 1) * 1000 // int(axis.tick))


NAME = "trendloom.json"
TOGETHER = "answered together"
"""Whether the events of a query are kept with those of others; as it began, it goes on."""
DELAY = "delay"
"""The longest delay of the watermark so far, in milliseconds: it says which events batches can have seen."""


@dataclass(frozen=True)
class CheckpointManifest:
    """A workload that fits a checkpoint: its flows as they go on there, and what there is to note down."""

    streaming_queries: tuple[StreamingQuery, ...]
    told: dict[str, Any]


def agreed(
    checkpoint: str, streaming_queries: tuple[StreamingQuery, ...], buckets: int, delay: int = 0
) -> tuple[StreamingQuery, ...]:
    """Refuse a workload that does not fit the checkpoint; else note it down there.

    It has the generation of each streaming query, and since when it sees all events. `delay`: of the watermark, in ms.
    """
    agreement = agreement_of(checkpoint, streaming_queries, buckets, delay)
    system, folder = place(checkpoint)
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/.{NAME}.part") as sink:
        sink.write(json.dumps(agreement.told, indent=2).encode())
    system.move(f"{folder}/.{NAME}.part", f"{folder}/{NAME}")
    return agreement.streaming_queries


def agreement_of(
    checkpoint: str, streaming_queries: tuple[StreamingQuery, ...], buckets: int, delay: int = 0
) -> CheckpointManifest:
    """What a workload and a checkpoint agree on; nothing is written."""
    system, folder = place(checkpoint)
    old = _read(system, f"{folder}/{NAME}")
    if old is None and system.get_file_info(f"{folder}/offsets").type is fs.FileType.Directory:
        raise OptionError(
            f"the folder {checkpoint} is a checkpoint, but not one of Trendloom's",
            hint="give a new folder, or the one that this workload was started with",
        )
    known: dict[str, Any] = {} if old is None else old["queries"]
    if old is not None and old["buckets"] != buckets:
        raise OptionError(
            f"the checkpoint was made with {old['buckets']} buckets, not {buckets}",
            hint=f"use {old['buckets']} buckets, or a new checkpoint",
        )
    longest = delay if old is None else int(old.get(DELAY, delay))
    watermark = watermark_after(checkpoint)
    streaming_queries = tuple(
        _going_on(streaming_query, known.get(streaming_query.name), watermark, longest)
        for streaming_query in streaming_queries
    )
    present = {streaming_query.name: _told(streaming_query) for streaming_query in streaming_queries}
    gone = {name: {**one, "state": None} for name, one in known.items() if name not in present}
    together = old is None or _together(old)
    told = {"buckets": buckets, "together": together, DELAY: max(longest, delay), "queries": gone | present}
    return CheckpointManifest(streaming_queries, told)


def _told(streaming_query: StreamingQuery) -> dict[str, Any]:
    """What is noted down of a query."""
    told = {
        "state": streaming_query.fingerprint,
        "generation": streaming_query.generation,
        "since": streaming_query.since,
    }
    return {**told, TOGETHER: True} if streaming_query.together else told


def travel_together(checkpoint: str) -> bool:
    """Whether the queries of a checkpoint share parcels and buckets of state; those of older ones have their own."""
    system, folder = place(checkpoint)
    known = _read(system, f"{folder}/{NAME}")
    return known is not None and _together(known)


def _together(known: dict[str, Any]) -> bool:
    return bool(known.get("together", False))


def _going_on(
    streaming_query: StreamingQuery, known: dict[str, Any] | None, watermark: int | None, delay: int
) -> StreamingQuery:
    """The streaming query of the checkpoint, or one that begins after all that earlier batches have seen."""
    if known is not None and known["state"] is not None:
        if known["state"] not in streaming_query.continued:
            streaming_query = as_before_rules(streaming_query)
        if known["state"] not in streaming_query.continued:
            raise OptionError(
                f"{named(streaming_query)} has changed since the checkpoint was made, and its state does not fit",
                hint="put the old query back, or give the new one another name (QUERY name: ...): "
                "it then starts afresh, and the others go on",
            )
        together = bool(known.get(TOGETHER, False))
        return replace(streaming_query, generation=known["generation"], since=known.get("since"), together=together)
    axis = streaming_query.physical.plan.schema.axis
    since = None if watermark is None else first_unseen(axis, watermark, delay)
    return replace(streaming_query, generation=0 if known is None else known["generation"] + 1, since=since)


def _read(system: fs.FileSystem, path: str) -> dict[str, Any] | None:
    if system.get_file_info(path).type is not fs.FileType.File:
        return None
    try:
        with system.open_input_stream(path) as source:
            found: dict[str, Any] = json.loads(source.read())
    except ValueError as error:
        raise StateError(
            f"the checkpoint cannot be read: {path}: {error}",
            hint="put back a copy of the whole folder, or give a new checkpoint, which begins from the start",
        ) from None
    return found
