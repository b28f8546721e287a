"""Notes of ours in a checkpoint: what it was made with, so that a change that does not fit is refused.

A workload may gain queries, lose them, and change HAVING and what RETURN makes of the same aggregates. A query whose
pattern, predicates, groups or windows change is another query: under the old name it is refused, under a new one it
starts afresh. So does one that was taken out and is put back: it has missed events, and its *generation* shows it.
A query that joins when batches are done begins after all events that these have seen (`since`).

How far a stream is, is read from the notes that Spark keeps of batches that are done: the watermark after the last of
them. It is the greatest time seen so far, in whole milliseconds, less the delay. So all events that earlier batches
have seen lie before the watermark, plus the delay, plus one millisecond.
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

NAME = "trendloom.json"
GROUPED = "answered together"
"""Whether the events of a query are kept with those of others; as it began, it goes on."""
DELAY = "delay"
"""The longest delay of the watermark so far, in milliseconds: it bounds the events that batches can have seen."""
COMMITS = "commits"
WATERMARK = "nextBatchWatermarkMs"
BEGIN_AGAIN = "put back a copy of the whole folder, or give a new checkpoint, which begins from the start"


@dataclass(frozen=True)
class CheckpointManifest:
    """A workload that fits a checkpoint: its queries as they go on there, and the content of the manifest."""

    streaming_queries: tuple[StreamingQuery, ...]
    content: dict[str, Any]


def write_manifest(
    checkpoint: str, streaming_queries: tuple[StreamingQuery, ...], buckets: int, delay: int = 0
) -> tuple[StreamingQuery, ...]:
    """Refuse a workload that does not fit the checkpoint; else write its manifest there.

    It has the generation of each query, and since when it sees all events. `delay`: of the watermark, in milliseconds.
    """
    manifest = manifest_of(checkpoint, streaming_queries, buckets, delay)
    write_note(checkpoint, NAME, json.dumps(manifest.content, indent=2))
    return manifest.streaming_queries


def manifest_of(
    checkpoint: str, streaming_queries: tuple[StreamingQuery, ...], buckets: int, delay: int = 0
) -> CheckpointManifest:
    """The manifest of a workload on a checkpoint, which may have one already; nothing is written."""
    old = _manifest(checkpoint)
    if old is None and has_offsets(checkpoint):
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
    found = tuple(_going_on(query, known.get(query.name), watermark, longest) for query in streaming_queries)
    present = {query.name: _entry(query) for query in found}
    gone = {name: {**one, "state": None} for name, one in known.items() if name not in present}
    together = old is None or _shares_parcels(old)
    content = {"buckets": buckets, "together": together, DELAY: max(longest, delay), "queries": gone | present}
    return CheckpointManifest(found, content)


def shares_parcels(checkpoint: str) -> bool:
    """Whether the queries of a checkpoint share parcels and buckets of state; those of older ones have their own."""
    known = _manifest(checkpoint)
    return known is not None and _shares_parcels(known)


def read_note(checkpoint: str, name: str) -> bytes | None:
    """The content of a file of ours in a checkpoint; None where there is none."""
    system, folder = place(checkpoint)
    path = f"{folder}/{name}"
    if system.get_file_info(path).type is not fs.FileType.File:
        return None
    with system.open_input_stream(path) as source:
        return bytes(source.read())


def write_note(checkpoint: str, name: str, content: str) -> None:
    """Write a file of ours into a checkpoint; readers see the old content or the new one."""
    system, folder = place(checkpoint)
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/.{name}.part") as sink:
        sink.write(content.encode())
    system.move(f"{folder}/.{name}.part", f"{folder}/{name}")


def has_offsets(checkpoint: str) -> bool:
    """Whether a stream was started on the checkpoint."""
    system, folder = place(checkpoint)
    return system.get_file_info(f"{folder}/offsets").type is fs.FileType.Directory


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
            _version, content = source.read().decode().split("\n", 1)
        return max(int(json.loads(content)[WATERMARK]), 0)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"the checkpoint cannot be read: {newest.path}: {error}", hint=BEGIN_AGAIN) from None


def first_unseen(axis: TimeAxis, watermark: int, delay: int) -> int:
    """The first tick later than all events that batches have seen; watermark and delay in milliseconds."""
    return -(-(watermark + delay + 1) * 1000 // int(axis.tick))


def _manifest(checkpoint: str) -> dict[str, Any] | None:
    try:
        content = read_note(checkpoint, NAME)
        found: dict[str, Any] | None = None if content is None else json.loads(content)
    except ValueError as error:
        path = f"{place(checkpoint)[1]}/{NAME}"
        raise StateError(f"the checkpoint cannot be read: {path}: {error}", hint=BEGIN_AGAIN) from None
    return found


def _entry(query: StreamingQuery) -> dict[str, Any]:
    """The entry of a query in the manifest."""
    entry = {"state": query.fingerprint, "generation": query.generation, "since": query.since}
    return {**entry, GROUPED: True} if query.grouped else entry


def _shares_parcels(known: dict[str, Any]) -> bool:
    return bool(known.get("together", False))


def _going_on(query: StreamingQuery, known: dict[str, Any] | None, watermark: int | None, delay: int) -> StreamingQuery:
    """The query as it goes on from the checkpoint, or begins after all that earlier batches have seen."""
    if known is None or known["state"] is None:
        since = None if watermark is None else first_unseen(query.physical.plan.schema.axis, watermark, delay)
        return replace(query, generation=0 if known is None else known["generation"] + 1, since=since)
    if known["state"] not in query.continued:
        query = as_before_rules(query)
    if known["state"] not in query.continued:
        raise OptionError(
            f"{named(query)} has changed since the checkpoint was made, and its state does not fit",
            hint="put the old query back, or give the new one another name (QUERY name: ...): "
            "it then starts afresh, and the others go on",
        )
    together = bool(known.get(GROUPED, False))
    return replace(query, generation=known["generation"], since=known.get("since"), grouped=together)
