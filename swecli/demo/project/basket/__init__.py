"""Prices of a small stationery shop."""
