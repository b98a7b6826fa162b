"""Compaction: shrinking the model's view in a transaction that can be undone."""
