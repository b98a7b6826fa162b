"""Themes: schemes of colours, and what the screen makes of them."""
