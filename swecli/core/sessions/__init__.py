"""Sessions on disk: the SQLite store, its journal, search, snapshots, logs."""
