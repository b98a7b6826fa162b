"""The user's programs that run on events of a session."""
