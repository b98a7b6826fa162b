"""The engine: the session actor, its turn loop, the tool scheduler, cancellation."""
