"""Why did it happen: from stretches of a chart to a reason, and from a reason to a monitor. See `door`."""
