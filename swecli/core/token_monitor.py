"""Counting tokens, at the place that the design names. It lives in ``swecli/library.py``."""

from swecli.library import TokenCounter, TokenMonitor

__all__ = ("TokenCounter", "TokenMonitor")
