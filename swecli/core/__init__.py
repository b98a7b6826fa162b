"""Everything of swecli that has no user interface. Nothing below here imports textual or rich."""
