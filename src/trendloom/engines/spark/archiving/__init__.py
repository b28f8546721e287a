"""Archives written by Spark: of a batch of events at once, and of a live stream batch by batch."""
