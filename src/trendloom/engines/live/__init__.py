"""Live streams, apart from the cluster that feeds them: what a step does with events, old and new, and a watermark."""
