"""Undo for files: changes by tools and commands, with the bytes before and after, stored outside the workspace."""
