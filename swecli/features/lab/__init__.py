"""Effect of other context settings on recorded sessions, without any model request."""
