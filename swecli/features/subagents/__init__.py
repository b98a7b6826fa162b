"""Subagents: tasks from the model, carried out by sessions inside the session."""
