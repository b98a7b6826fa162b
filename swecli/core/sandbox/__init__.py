"""Containment of commands: they can change only the workspace and reach no network."""
