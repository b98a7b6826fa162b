"""Memory beyond a conversation: memory files, and the session notes among them."""
