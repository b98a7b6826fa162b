"""swecli: a terminal coding agent with a context that the user can see, trust and undo.

As a library: ``from swecli import AgentOptions, Client, ContextConfig``; a name is loaded on first use.
"""

import sys as _sys

_program = (_sys.argv or [""])[0].replace("\\", "/").rpartition("/")[2]
if _program in ("swecli", "swecli.exe") or _sys.orig_argv[1:3] == ["-m", "swecli.cli"]:
    # The program itself, not a library's user: what it imports first may be interrupted, too.
    import _signal  # pyright: ignore[reportMissingImports] - signal without its imports

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swecli.core.agent import Agent, AgentError, Client, Result
    from swecli.core.agent_options import AgentOptions
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
    from swecli.core.tools.function import tool
    from swecli.library.context_manager import CompactedHistory, ContextConfig, ContextManager
    from swecli.library.counting import TokenCounter, TokenMonitor
    from swecli.library.documents import CodebaseSummary, ContextState, Message
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
    "swecli.core.agent": "Agent AgentError Client Result",
    "swecli.core.agent_options": "AgentOptions",
    "swecli.core.context_management.budget": "ComponentLimits",
    "swecli.core.context_management.compaction.options": "CompactContext CompactDecision CompactionOptions "
    "CompactResult ImportanceStrategy SummarizationStrategy TruncationStrategy",
    "swecli.core.context_retriever": "ContextRetriever TaskContext",
    "swecli.core.playbook.bullet": "Bullet",
    "swecli.core.playbook.playbook": "Playbook",
    "swecli.core.playbook.reflector": "ExecutionReflector ToolCall",
    "swecli.core.tools.function": "tool",
    "swecli.library.context_manager": "CompactedHistory ContextConfig ContextManager",
    "swecli.library.counting": "TokenCounter TokenMonitor",
    "swecli.library.documents": "CodebaseSummary ContextState Message",
    "swecli.library.figures": "CompactionResult ContextBudget ContextLimits ContextStats Forecast TokenUsage",
    "swecli.library.stored_results": "ResultStore",
}
"""The library's names, by module."""

__version__ = "0.1.0"

__all__ = (
    "Agent",
    "AgentError",
    "AgentOptions",
    "Bullet",
    "Client",
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
    "Result",
    "ResultStore",
    "SummarizationStrategy",
    "TaskContext",
    "TokenCounter",
    "TokenMonitor",
    "TokenUsage",
    "ToolCall",
    "TruncationStrategy",
    "tool",
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # by name: importing swecli does not import its library

    place = next(place for place, names in _PLACES.items() if name in names.split())
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
