"""Effects of a shell command, as far as its text and the file system prove them. Fails closed everywhere."""
