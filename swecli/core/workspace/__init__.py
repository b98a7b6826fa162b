"""Files, commands and searches in the workspace."""
