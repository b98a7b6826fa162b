"""The transcript: one line-rendered, virtualised widget, and the pure functions that draw its content."""
