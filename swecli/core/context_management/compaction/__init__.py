"""Compaction: making room in the model's view, as a transaction that can be taken back."""
