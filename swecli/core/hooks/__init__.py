"""Hooks: the user's own programs that run at fixed points of a session, in Claude Code's format."""
