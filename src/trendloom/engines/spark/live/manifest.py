"""What a checkpoint was made with: a small file beside Spark's own, so that a change that does not fit is refused.

A workload may gain queries, lose them, and change what they RETURN or keep with HAVING. A query whose pattern,
predicates, groups or windows change is another query: under the old name it is refused, under a new one it starts
afresh.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow.fs as fs

from trendloom.engines.live.flow import Flow
from trendloom.engines.spark.live.late import place
from trendloom.errors import OptionError, RunError

NAME = "trendloom.json"


def check_manifest(checkpoint: str, flows: tuple[Flow, ...], buckets: int) -> None:
    """Refuse a workload that does not fit the checkpoint; else note it down there."""
    system, folder = place(checkpoint)
    old = _read(system, f"{folder}/{NAME}")
    if old is not None:
        if old["buckets"] != buckets:
            raise OptionError(
                f"the checkpoint was made with {old['buckets']} buckets, not {buckets}",
                hint=f"use {old['buckets']} buckets, or a new checkpoint",
            )
        for flow in flows:
            known = old["queries"].get(flow.name)
            if known is not None and known != flow.fingerprint:
                raise OptionError(
                    f"{_named(flow)} has changed since the checkpoint was made, and its state does not fit",
                    hint="put the old query back, or give the new one another name (QUERY name: ...): "
                    "it then starts afresh, and the others go on",
                )
    elif system.get_file_info(f"{folder}/offsets").type is fs.FileType.Directory:
        raise OptionError(
            f"the folder {checkpoint} is a checkpoint, but not one of Trendloom's",
            hint="give a new folder, or the one that this workload was started with",
        )
    told = {"buckets": buckets, "queries": {flow.name: flow.fingerprint for flow in flows}}
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/{NAME}") as sink:
        sink.write(json.dumps(told, indent=2).encode())


def _named(flow: Flow) -> str:
    return f"query '{flow.name}'" if flow.name else "the query"


def _read(system: fs.FileSystem, path: str) -> dict[str, Any] | None:
    if system.get_file_info(path).type is not fs.FileType.File:
        return None
    try:
        with system.open_input_stream(path) as source:
            found: dict[str, Any] = json.loads(source.read())
    except ValueError as error:
        raise RunError(
            f"the checkpoint cannot be read: {path}: {error}",
            hint="put back a copy of the whole folder, or give a new checkpoint, which begins from the start",
        ) from None
    return found
