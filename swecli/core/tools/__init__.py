"""Tools: one small class per file, a registry, and the bounding of results."""
