"""Undo for files: what tools and commands changed, with the bytes of before and after, outside the workspace."""
