"""What was learned about the project: lessons from failures, told where they apply."""
