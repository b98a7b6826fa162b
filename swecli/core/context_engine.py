"""The context as documents, and its manager, at the place that the design names. They live in ``swecli/library.py``."""

from swecli.library import CodebaseSummary, ContextManager, ContextState, Message, TaskContext

__all__ = ("CodebaseSummary", "ContextManager", "ContextState", "Message", "TaskContext")
