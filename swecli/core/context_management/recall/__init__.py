"""Recall: what has left the context, found by its words and given back by its ids."""

from swecli.core.context_management.recall.recall import Recall

__all__ = ["Recall"]
