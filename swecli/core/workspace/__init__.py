"""The user's files and commands: atomic edits, ignore rules, processes, background jobs."""
