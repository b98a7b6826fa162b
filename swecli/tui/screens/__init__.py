"""Screens in place of the transcript, such as help, settings, permissions and sessions; most are lists filtered by
typing."""
