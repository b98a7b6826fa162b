"""The dock at the bottom: one panel at a time, nothing modal over the transcript."""
