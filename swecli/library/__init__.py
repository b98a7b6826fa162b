"""swecli's context for programs: documents, figures, counters, the context manager, stored results.

The program itself needs none of them. ``from swecli import ...`` has them and the ``Client``. Times are
timezone-aware, in UTC; sizes are tokens.
"""

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
