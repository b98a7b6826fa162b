"""Changes from git for the model to review or to describe."""
