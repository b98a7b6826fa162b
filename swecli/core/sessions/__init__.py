"""Sessions on disk: the SQLite store, its journal, results, search, snapshots and logs."""
