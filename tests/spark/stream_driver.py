"""A program that runs a workload on a live stream, so that tests can kill it: `python stream_driver.py given.json`.

It reads a folder of Parquet files, writes every batch into a folder of its own and its progress into a file of JSON
lines. When the file `stop` is there, it works off what has arrived and ends.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.spark.sinks import write_once
from tests.spark.streams import COLUMNS, WATERMARK

from trendloom.spark import detect, session


def start(given: dict[str, Any]) -> Any:
    spark = session(given["master"], settings=given["settings"])
    spark.sparkContext.setLogLevel("WARN")
    source = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", given["files"]).parquet(given["source"])
    checkpoint, late = given["checkpoint"], given["late"]
    rows = detect(
        source, given["workload"], watermark=WATERMARK, buckets=given["buckets"], late_to=late, checkpoint=checkpoint
    )

    def sink(df: Any, batch: int) -> None:
        write_once(df, batch, Path(given["sink"]))
        hold = given["hold"]
        if batch == hold:  # the batch is written, but not committed: the test kills this process now
            Path(given["progress"]).with_name("holding").touch()
            time.sleep(600)

    writer = rows.writeStream.option("checkpointLocation", checkpoint).foreachBatch(sink)
    return writer.trigger(processingTime=given["every"]).start()


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    query = start(given)
    stop, told = Path(given["stop"]), -1
    with Path(given["progress"]).open("a") as progress:
        ending = False
        while not ending:
            ending = stop.exists()
            if ending:
                query.processAllAvailable()
            else:
                query.awaitTermination(1)
            for one in query.recentProgress:
                if one.batchId > told:
                    told = one.batchId
                    print(json.dumps(json.loads(one.json)), file=progress, flush=True)
    query.stop()


if __name__ == "__main__":
    main()
