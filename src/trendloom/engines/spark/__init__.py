"""The Spark engine: sessions, frames, batch. Importing this package alone does not import pyspark."""
