"""Facts about a project, from its own files: nothing is run, reading is bounded in time and bytes."""
