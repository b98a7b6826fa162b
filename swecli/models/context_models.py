"""The documents of a context, at the place that the design names."""

from swecli.library import CodebaseSummary, ContextState, Message, TaskContext

__all__ = ("CodebaseSummary", "ContextState", "Message", "TaskContext")
