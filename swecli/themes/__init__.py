"""Themes: their colours, those that come with swecli, and files of the user and the project."""
