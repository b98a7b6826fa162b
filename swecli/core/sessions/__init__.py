<<<<<<< HEAD
"""Sessions on disk: the SQLite store, its journal, search, snapshots, logs."""
=======
"""Storage of sessions: their events, large results, logs and search index."""
>>>>>>> docstr1
