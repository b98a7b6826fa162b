"""Where in a project something is: an index of its files, read by words, and what a text mentions of them."""
