"""Web pages: fetching, and HTML as text."""
