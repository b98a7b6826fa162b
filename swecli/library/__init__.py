"""swecli's context for programs: documents, figures, counters, the context manager, stored results.

The program itself needs none of them. ``from swecli import ...`` has them and the ``Client``; a name is loaded on first
use. Times are timezone-aware, in UTC; sizes are tokens.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.core.context_management.budget import ComponentLimits
    from swecli.core.context_management.compaction.options import (
        CompactContext,
        CompactDecision,
        CompactionOptions,
        CompactResult,
        ImportanceStrategy,
        SummarizationStrategy,
        TruncationStrategy,
    )
    from swecli.core.context_retriever import ContextRetriever, TaskContext
    from swecli.core.playbook.bullet import Bullet
    from swecli.core.playbook.playbook import Playbook
    from swecli.core.playbook.reflector import ExecutionReflector, ToolCall
    from swecli.library.context_manager import CompactedHistory, ContextConfig, ContextManager, ledger_of
    from swecli.library.counting import TokenCounter, TokenMonitor, TransformersCounter, UsageStats
    from swecli.library.documents import (
        CodebaseSummary,
        ContextState,
        Message,
        codebase_summary,
        context_state,
        message_document,
    )
    from swecli.library.figures import (
        CompactionResult,
        ContextBudget,
        ContextLimits,
        ContextStats,
        Forecast,
        TokenUsage,
    )
    from swecli.library.stored_results import ResultStore

_PLACES = {
    "swecli.core.context_management.budget": "ComponentLimits",
    "swecli.core.context_management.compaction.options": "CompactContext CompactDecision CompactionOptions "
    "CompactResult ImportanceStrategy SummarizationStrategy TruncationStrategy",
    "swecli.core.context_retriever": "ContextRetriever TaskContext",
    "swecli.core.playbook.bullet": "Bullet",
    "swecli.core.playbook.playbook": "Playbook",
    "swecli.core.playbook.reflector": "ExecutionReflector ToolCall",
    "swecli.library.context_manager": "CompactedHistory ContextConfig ContextManager ledger_of",
    "swecli.library.counting": "TokenCounter TokenMonitor TransformersCounter UsageStats",
    "swecli.library.documents": "CodebaseSummary ContextState Message codebase_summary context_state message_document",
    "swecli.library.figures": "CompactionResult ContextBudget ContextLimits ContextStats Forecast TokenUsage",
    "swecli.library.stored_results": "ResultStore",
}
"""Names by module."""

__all__ = (
    "Bullet",
    "CodebaseSummary",
    "CompactContext",
    "CompactDecision",
    "CompactResult",
    "CompactedHistory",
    "CompactionOptions",
    "CompactionResult",
    "ComponentLimits",
    "ContextBudget",
    "ContextConfig",
    "ContextLimits",
    "ContextManager",
    "ContextRetriever",
    "ContextState",
    "ContextStats",
    "ExecutionReflector",
    "Forecast",
    "ImportanceStrategy",
    "Message",
    "Playbook",
    "ResultStore",
    "SummarizationStrategy",
    "TaskContext",
    "TokenCounter",
    "TokenMonitor",
    "TokenUsage",
    "ToolCall",
    "TransformersCounter",
    "TruncationStrategy",
    "UsageStats",
    "codebase_summary",
    "context_state",
    "ledger_of",
    "message_document",
)


def __getattr__(name: str) -> object:
    module = next((module for module, names in _PLACES.items() if name in names.split()), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
