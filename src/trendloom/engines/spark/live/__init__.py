"""Live streams on Spark Structured Streaming: packing events, state in Spark's store, result rows."""
