"""The guide to the project that /init writes, from the project's own files."""
