"""The linear front-end: lines out, lines in, for screen readers, dumb terminals and pipes."""
