"""Storage of sessions: their events, large results, logs and search index."""
