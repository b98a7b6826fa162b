"""Patterns in sequences of tool calls, each with a category and a confidence.

Its findings apply to most projects. A program decides what to keep; swecli's own playbook accepts only what passes
``novelty.judge``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from swecli.core.playbook.commands import parsed, starts_program
from swecli.lazy_pattern import lazy_pattern

Outcome = str
"""``success``; any other value means that something failed."""


class ToolCall(Struct, frozen=True):
    """One call with its result or error, if known."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: Any = None
    error: str | None = None


class Reflection(Struct, frozen=True):
    """A pattern. ``confidence`` is 0..1."""

    category: str
    content: str
    confidence: float
    reasoning: str


_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "list": frozenset(("list_files", "list_directory", "list_dir", "ls", "glob")),
    "read": frozenset(("read_file", "read", "open_file", "view")),
    "search": frozenset(("search", "grep", "search_code", "search_files", "grep_search", "find")),
    "write": frozenset(("write_file", "edit_file", "create_file", "apply_patch", "write", "edit", "str_replace")),
    "run": frozenset(("run_command", "bash", "shell", "shell_exec", "execute_command")),
}
_TEST_FILE: Final = lazy_pattern(r"(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*\.(?:test|spec))\.\w+$|(?:^|/)tests?/")
_FILE_ERROR: Final = lazy_pattern(r"(?i)not found|no such file|does not exist|is a directory|cannot open|enoent")


class _Seen(Struct, frozen=True):
    """One call in the vocabulary of the patterns: ``kind``, its file, the purpose of its command."""

    kind: str
    path: str
    intent: str
    command: str
    failed: bool
    error: str

    @property
    def is_test_file(self) -> bool:
        return bool(_TEST_FILE.search(self.path))


def _seen(call: ToolCall) -> _Seen:
    kind = next((name for name, tools in _KINDS.items() if call.name in tools), "")
    values = call.parameters
    path = next((str(values[key]) for key in ("file_path", "path", "filename") if values.get(key)), "")
    command = str(values.get("command", "")) if kind == "run" else ""
    return _Seen(
        kind, path, parsed(command).intent if command else "", command, call.error is not None, call.error or ""
    )


class ExecutionReflector:
    """Examines the calls that answered one query. Fewer than ``min_tool_calls`` give no result; findings below
    ``min_confidence`` are left out."""

    def __init__(self, min_tool_calls: int = 2, min_confidence: float = 0.6) -> None:
        self.min_tool_calls = min_tool_calls
        self.min_confidence = min_confidence

    def reflect(self, query: str, tool_calls: Sequence[ToolCall], outcome: Outcome = "success") -> Reflection | None:
        """The pattern with the highest confidence; None if there is none. Failed calls only show recovery from a
        failure."""
        if len(tool_calls) < self.min_tool_calls:
            return None
        seen = [_seen(call) for call in tool_calls]
        failed = outcome != "success" or any(call.failed for call in seen)
        patterns = [pattern for find in (_AFTER_ERRORS if failed else _PATTERNS) if (pattern := find(seen)) is not None]
        best = max(patterns, key=lambda candidate: candidate.confidence, default=None)
        return best if best is not None and best.confidence >= self.min_confidence else None


def _follows(seen: Sequence[_Seen], first: Callable[[_Seen], bool], then: Callable[[_Seen], bool]) -> bool:
    """Whether a call of the second kind follows one of the first."""
    start = next((number for number, call in enumerate(seen) if first(call)), None)
    return start is not None and any(then(call) for call in seen[start + 1 :])


def _is(kind: str) -> Callable[[_Seen], bool]:
    return lambda call: call.kind == kind


def _runs(intent: str) -> Callable[[_Seen], bool]:
    return lambda call: call.kind == "run" and call.intent == intent


def _starts_program(call: _Seen) -> bool:
    return call.kind == "run" and starts_program(call.command)


def _file_operations(seen: Sequence[_Seen]) -> Reflection | None:
    if _follows(seen, _is("list"), _is("read")):
        return Reflection(
            "file_operations",
            "List directory before reading files to understand the structure",
            0.75,
            "a listing came before the file was read",
        )
    written = {call.path for call in seen if call.kind == "write" and call.path}
    if any(
        _follows(seen, lambda call, p=path: call.kind == "read" and call.path == p, _is("write")) for path in written
    ):
        return Reflection(
            "file_operations",
            "Read file before writing to preserve data",
            0.8,
            "the file was read before it was written",
        )
    if len({call.path for call in seen if call.kind == "read"}) >= 3:
        return Reflection(
            "file_operations",
            "Read multiple related files for complete picture",
            0.7,
            "several files were read for one answer",
        )
    return None


def _navigation(seen: Sequence[_Seen]) -> Reflection | None:
    if _follows(seen, _is("search"), _is("read")):
        return Reflection(
            "code_navigation", "Search for keywords before reading files", 0.8, "a search led to the file that was read"
        )
    if sum(call.kind == "search" for call in seen) >= 2:
        return Reflection(
            "code_navigation",
            "Use multiple searches for exploration",
            0.7,
            "several searches were made one after another",
        )
    return None


def _testing(seen: Sequence[_Seen]) -> Reflection | None:
    test = _runs("test")
    if _follows(seen, lambda call: call.kind == "write" and call.is_test_file, test) and _follows(
        seen, test, lambda call: call.kind == "write" and not call.is_test_file
    ):
        return Reflection(
            "testing",
            "Write a failing test before the change that makes it pass",
            0.8,
            "test, run, change, in this order",
        )
    if _follows(seen, _is("write"), test):
        return Reflection("testing", "Run tests after code changes", 0.85, "the tests ran after a file was changed")
    if _follows(seen, lambda call: call.kind == "read" and call.is_test_file, test):
        return Reflection("testing", "Read test files before execution", 0.7, "a test file was read before it ran")
    return None


def _shell(seen: Sequence[_Seen]) -> Reflection | None:
    if _follows(seen, _runs("install"), _starts_program):
        return Reflection("shell_commands", "Install dependencies before run", 0.75, "an installation came first")
    if _follows(seen, _runs("build"), _runs("test")):
        return Reflection("shell_commands", "Build before test", 0.75, "a build came before the tests")
    status = _follows(
        seen,
        lambda call: call.command.startswith("git status"),
        lambda call: call.command.startswith("git ") and not call.command.startswith("git status"),
    )
    if status:
        return Reflection("shell_commands", "Check git status before operations", 0.7, "git status came first")
    return None


def _recovery(seen: Sequence[_Seen]) -> Reflection | None:
    def lost(call: _Seen) -> bool:
        return call.failed and call.kind in ("read", "write") and bool(_FILE_ERROR.search(call.error))

    if _follows(seen, lost, lambda call: call.kind in ("list", "search") and not call.failed):
        return Reflection(
            "error_handling", "List directory on file access errors to find the right path", 0.75, "a listing followed"
        )
    if _follows(
        seen, lambda call: call.failed and call.kind == "run", lambda call: call.kind == "run" and not call.failed
    ):
        return Reflection(
            "error_handling", "Verify environment on command failures", 0.7, "another command followed one that failed"
        )
    if _follows(
        seen, lambda call: call.failed, lambda call: call.kind in ("read", "list", "search") and not call.failed
    ):
        return Reflection(
            "error_handling", "Check preconditions before operations", 0.65, "a look around followed a failure"
        )
    return None


_PATTERNS: Final = (_file_operations, _navigation, _testing, _shell)
_AFTER_ERRORS: Final = (_recovery,)
