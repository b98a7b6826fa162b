"""Many tasks at once: a list of tasks, each isolated and verified, on this machine or on a Ray cluster."""
