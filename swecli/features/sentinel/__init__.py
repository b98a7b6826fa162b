"""Suggestions that improve the context."""
