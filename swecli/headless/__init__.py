"""Headless front-end: text, json, stream-json."""
