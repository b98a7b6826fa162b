"""Pages of the web: fetching one, and HTML as text."""
