"""Events out of topics of Kafka: the JSON in the values of messages, decoded by the columns that `--schema` names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendloom.engines.spark.errors import first_line
from trendloom.engines.spark.streaming.sources import (
    SOME_COLUMNS,
    SOURCES,
    TEXT,
    UNREADABLE,
    EventSource,
    columns_of_schema,
    refuse_max_files,
    struct_of,
)
from trendloom.errors import OptionError, option
from trendloom.model.time import UTC
from trendloom.streaming.connectors import ReadSettings, SourceAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONNECTOR = "kafka"
"""The format under which Spark registers its connector."""
MESSAGE = {"kafka_" + name: name for name in ("key", "topic", "partition", "offset", "timestamp")}
"""Columns that come from the message itself, not from its value, if the schema names them."""


@SOURCES.register
class KafkaSource(EventSource):
    """`kafka:HOST:PORT/TOPIC`."""

    scheme = "kafka"
    form = "kafka:HOST:PORT/TOPIC"

    def check(self) -> None:
        if self.address.max_files is not None:
            refuse_max_files()
        place = self.address.place
        servers, slash, topics = place.rpartition("/")
        if not slash or not topics or not all(re.fullmatch(r".+:\d+", one) for one in servers.split(",")):
            raise OptionError(f"'{place}' does not name a broker and a topic", hint="kafka:HOST:PORT/TOPIC")
        if self.address.schema is None:
            raise OptionError(
                "the columns of the messages are not known",
                hint=f"give {option('schema', SOME_COLUMNS)}: the fields of the JSON in their values",
            )

    def known_columns(self, times: tuple[str, ...], checkpoint: str | None = None) -> pa.Schema | None:
        return columns_of_schema(self.address.schema or "")

    def open(self, spark: SparkSession, settings: ReadSettings) -> DataFrame:
        messages, schema = _messages(spark, self.address), self.address.schema or ""
        return events_of_kafka(messages, schema, strict=settings.strict, time_zone=settings.time_zone)


def events_of_kafka(
    messages: DataFrame, schema: str | StructType, *, strict: bool = True, time_zone: str | None = None
) -> DataFrame:
    """Kafka's messages (key, value, topic, partition, offset, timestamp) as events: the JSON in their values, decoded.

    `schema` names the fields. Columns named kafka_key, kafka_topic, kafka_partition, kafka_offset or kafka_timestamp
    come from the message. A message without a value (a tombstone) is not an event. One that does not fit the schema
    stops the stream, or, if not `strict`, becomes an event without a time; topic, partition and offset then tell which.
    `time_zone`: that of times in the JSON that do not say theirs; UTC if not given.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    wanted = struct_of(schema) if isinstance(schema, str) else schema
    own = [each for each in wanted.fields if each.name not in MESSAGE]
    mark = [] if strict else [StructField(UNREADABLE, StringType())]
    mode = {"mode": "FAILFAST"} if strict else {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": UNREADABLE}
    mode["timeZone"] = time_zone or UTC
    content = F.from_json(F.col("value").cast("string"), StructType([*own, *mark]), mode)
    given = messages.filter(F.col("value").isNotNull()).select("*", content.alias(UNREADABLE))
    readable = F.lit(True) if strict else F.col(UNREADABLE)[UNREADABLE].isNull()

    def value(each: Any) -> Any:
        if each.name not in MESSAGE:
            return F.when(readable, F.col(UNREADABLE)[each.name]).alias(each.name)
        found = F.col(MESSAGE[each.name]).cast("string" if each.name == "kafka_key" else each.dataType)
        return (F.when(readable, found) if each.name == "kafka_timestamp" else found).alias(each.name)

    marks = [] if strict else [F.when(~readable, F.col("value").cast("string")).alias(TEXT)]
    return given.select(*map(value, wanted.fields), *marks)


def _messages(spark: SparkSession, address: SourceAddress) -> DataFrame:
    """The messages of topics, from the earliest on unless the checkpoint has offsets."""
    import pyspark
    from pyspark.errors import AnalysisException

    servers, _, topics = address.place.rpartition("/")
    reader = spark.readStream.format(CONNECTOR).option("kafka.bootstrap.servers", servers).option("subscribe", topics)
    try:
        return reader.options(**{"startingOffsets": "earliest", **address.options}).load()
    except AnalysisException as error:
        if "Failed to find data source" not in str(error) and error.getCondition() != "DATA_SOURCE_NOT_FOUND":
            raise OptionError(f"the topic cannot be read: {first_line(error)}") from None
    raise OptionError(
        "Spark's connector to Kafka is not there",
        hint=option("packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}")
        + " (spark.jars.packages of a session of your own) fetches it; without a network, put its jars into spark.jars",
    )
