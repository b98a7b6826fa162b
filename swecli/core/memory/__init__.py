"""What is known beyond a conversation: files of memory, and the session notes among them."""
