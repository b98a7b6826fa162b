"""Screens in place of the transcript: help, settings, permissions, sessions. Each is a list that typing narrows."""
