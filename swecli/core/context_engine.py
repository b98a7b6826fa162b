"""The context as documents, and its manager, at the place that the design names. They live in ``swecli/library/``."""

from swecli.core.context_retriever import TaskContext
from swecli.library.context_manager import ContextManager
from swecli.library.documents import CodebaseSummary, ContextState, Message

__all__ = ("CodebaseSummary", "ContextManager", "ContextState", "Message", "TaskContext")
