"""How far a stream is, by the notes that Spark keeps of batches that are done: the watermark after the last of them.

Spark's watermark is the greatest time seen so far, in whole milliseconds, less the delay. So all events that earlier
batches have seen lie before the watermark, plus the delay, plus one millisecond.
"""

from __future__ import annotations

import json

import pyarrow.fs as fs

from trendloom.errors import StateError
from trendloom.io.places import place
from trendloom.model.time import TimeAxis

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
