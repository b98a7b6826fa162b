"""swecli: a terminal coding agent whose context the user can see, trust and take back."""

__version__ = "0.1.0"
