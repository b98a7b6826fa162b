"""Modules at the places that the design names; what they have lives in ``swecli/library/``."""
