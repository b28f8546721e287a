"""What a checkpoint was made with: a small file beside Spark's own, so that a change that does not fit is refused.

A workload may gain queries, lose them, and change HAVING and what RETURN makes of the same aggregates. A query whose
pattern, predicates, groups or windows change is another query: under the old name it is refused, under a new one it
starts afresh. So does one that was taken out and is put back: it has missed events, and its *generation* tells.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow.fs as fs

from trendloom.engines.live.flow import Flow
from trendloom.errors import OptionError, StateError
from trendloom.io.places import place

NAME = "trendloom.json"


def agreed(checkpoint: str, flows: tuple[Flow, ...], buckets: int) -> tuple[Flow, ...]:
    """Refuse a workload that does not fit the checkpoint; else note it down there. The flows know their generation."""
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
    flows = tuple(_with_generation(flow, known.get(flow.name)) for flow in flows)
    present = {flow.name: {"state": flow.fingerprint, "generation": flow.generation} for flow in flows}
    gone = {name: {**one, "state": None} for name, one in known.items() if name not in present}
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/{NAME}") as sink:
        told = {"buckets": buckets, "together": old is None or _together(old), "queries": gone | present}
        sink.write(json.dumps(told, indent=2).encode())
    return flows


def travel_together(checkpoint: str) -> bool:
    """Whether the queries of a checkpoint share parcels and buckets of state; those of older ones have their own."""
    system, folder = place(checkpoint)
    known = _read(system, f"{folder}/{NAME}")
    return known is not None and _together(known)


def _together(known: dict[str, Any]) -> bool:
    return bool(known.get("together", False))


def _with_generation(flow: Flow, known: dict[str, Any] | None) -> Flow:
    if known is None:
        return flow
    if known["state"] is None:
        return replace(flow, generation=known["generation"] + 1)
    if known["state"] != flow.fingerprint:
        raise OptionError(
            f"{_named(flow)} has changed since the checkpoint was made, and its state does not fit",
            hint="put the old query back, or give the new one another name (QUERY name: ...): "
            "it then starts afresh, and the others go on",
        )
    return replace(flow, generation=known["generation"])


def _named(flow: Flow) -> str:
    return f"query '{flow.name}'" if flow.name else "the query"


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
