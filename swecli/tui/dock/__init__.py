"""The dock at the bottom: one panel at a time, none modal over the transcript."""
