"""What a shell command does, as far as its text and the file system prove it. Fails closed everywhere."""
