"""The interface in a browser: a server on this machine for one session's page."""
