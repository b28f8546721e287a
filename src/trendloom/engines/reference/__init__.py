"""The reference evaluator as an engine."""
