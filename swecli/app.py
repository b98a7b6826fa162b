"""Composition root: settings -> services -> session. Nothing else builds services."""
