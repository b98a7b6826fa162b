"""Project search: an index of the files, queried by words, and the files that a text mentions."""
