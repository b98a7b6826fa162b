"""OPENCLI.md: the guide to a project that agents read at the start of each session."""
