"""The documents of a context, at the place that the design names."""

from swecli.core.context_retriever import TaskContext
from swecli.library.documents import CodebaseSummary, ContextState, Message

__all__ = ("CodebaseSummary", "ContextState", "Message", "TaskContext")
