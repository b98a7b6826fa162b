"""Counting tokens, at the place that the design names. It lives in ``swecli/library/``."""

from swecli.library.counting import TokenCounter, TokenMonitor

__all__ = ("TokenCounter", "TokenMonitor")
