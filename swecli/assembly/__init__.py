"""The parts of the composition root: start-up facts, storage, model, services."""
