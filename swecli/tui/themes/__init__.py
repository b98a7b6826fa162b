"""Themes: colour schemes and their use on the screen."""
