"""Slash commands, one file each, written once for every front-end."""
