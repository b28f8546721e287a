"""A stand-in for a Kafka broker, for tests without its connector: a folder with one file of messages per partition.

It is a Python data source with Kafka's columns and options (Spark keeps Kafka's name for itself). An offset is a number
of lines, so messages are read again in the same order after a restart, as those of a broker are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAME = "broker_of_tests"
COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"


def produce(folder: Path, partition: int, *values: object, key: str | None = None) -> None:
    """Append messages to a partition; what is not text is sent as JSON, None is a tombstone."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{partition}.log").open("a") as log:
        for value in values:
            sent = value if value is None or isinstance(value, str) else json.dumps(value)
            log.write(json.dumps({"key": key, "value": sent, "time": 1_700_000_000}) + "\n")


def register(spark: Any) -> None:
    """Make the broker known to a session; its folder is the option `folder`."""
    # defined here so that workers get them by value: they cannot import the tests
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

    class Reader(SimpleDataSourceStreamReader):
        def __init__(self, options: Any) -> None:
            assert options["kafka.bootstrap.servers"]
            assert options["startingOffsets"] == "earliest"
            self.folder, self.topic = options["folder"], options["subscribe"]

        def initialOffset(self) -> dict[str, int]:
            return {}

        def read(self, start: dict[str, int]) -> tuple[Any, dict[str, int]]:
            end = {name: len(lines) for name, lines in self.logs().items()}
            return self.readBetweenOffsets(start, end), end

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Any:
            from datetime import UTC, datetime

            logs = self.logs()
            found = []
            for name in sorted(end):
                for at in range(start.get(name, 0), end[name]):
                    sent = json.loads(logs[name][at])
                    key, value = (None if sent[one] is None else sent[one].encode() for one in ("key", "value"))
                    moment = datetime.fromtimestamp(sent["time"], UTC)
                    found.append((key, value, self.topic, int(name), at, moment))
            return iter(found)

        def logs(self) -> dict[str, list[str]]:
            return {path.stem: path.read_text().splitlines() for path in Path(self.folder).glob("*.log")}

    class Broker(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> str:
            return COLUMNS

        def simpleStreamReader(self, schema: Any) -> Any:
            return Reader(self.options)

    spark.dataSource.register(Broker)
