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
    from swecli.core.tools.function import tool
    from swecli.library import (
        Bullet,
        CodebaseSummary,
        CompactContext,
        CompactDecision,
        CompactedHistory,
        CompactionOptions,
        CompactionResult,
        CompactResult,
        ComponentLimits,
        ContextBudget,
        ContextConfig,
        ContextLimits,
        ContextManager,
        ContextRetriever,
        ContextState,
        ContextStats,
        ExecutionReflector,
        Forecast,
        ImportanceStrategy,
        Message,
        Playbook,
        ResultStore,
        SummarizationStrategy,
        TaskContext,
        TokenCounter,
        TokenMonitor,
        TokenUsage,
        ToolCall,
        TruncationStrategy,
    )

_PLACES = {
    **dict.fromkeys(("Agent", "AgentError", "Client", "Result"), "swecli.core.agent"),
    "AgentOptions": "swecli.core.agent_options",
    "tool": "swecli.core.tools.function",
}
"""Modules of the names that the library of contexts does not have."""

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

    return getattr(import_module(_PLACES.get(name, "swecli.library")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
