"""The line above the prompt: what is going on, for how long, and how to stop it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from swecli.tui.state import Running, UiState


SILENCE = 10.0
"""Seconds without anything from the model after which that is told."""
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "read_file": "Reading",
        "write_file": "Writing",
        "edit_file": "Editing",
        "apply_patch": "Editing",
        "list_files": "Listing",
        "search": "Searching",
        "run_command": "Running",
        "update_todos": "Planning",
        "ask_user": "Asking",
        "web_fetch": "Fetching",
        "job": "Looking at job",
        "read_result": "Reading result",
        "recall": "Recalling",
        "compact_context": "Compacting",
    }
)
"""What a tool is doing, by its name."""


def describe(state: UiState, *, now: float) -> tuple[str, str]:
    """The activity as ``(what, how to stop)``; both empty while nothing runs. ``now`` is Unix seconds."""
    if not state.busy and not state.running:
        return "", ""
    seconds = elapsed(now - state.turn_since) if state.busy else ""
    stop = "esc to interrupt"
    if state.interrupting:
        return "Interrupting…", ""
    if state.requests:
        return f"Waiting for your answer {seconds}".rstrip(), ""
    if state.retry is not None:
        left = max(0, round(state.retry_at - now))
        retry = state.retry
        return f"Retry {retry.attempt} of {retry.limit} in {left}s: {retry.reason}", "esc to stop"
    what = f"{_doing(state.running)} {seconds}".rstrip()
    silence = now - state.heard
    model_works = state.busy and not any(
        item.executing or item.awaits or item.kind == "compaction" for item in state.running.values()
    )
    told_already = not state.running and silence > now - state.turn_since - 2  # by the time since the turn began
    if model_works and silence >= SILENCE and not told_already:
        what = f"{what} · nothing new for {elapsed(silence)}"
    return what, stop


def _doing(running: dict[str, Running]) -> str:
    executing = [item for item in running.values() if item.executing and item.kind in ("tool", "subagent")]
    if executing:
        first = executing[0]
        verb = VERBS.get(first.name, first.name or "Working")
        more = f" (+{len(executing) - 1} more)" if len(executing) > 1 else ""
        return f"{verb} {first.title}{more}".strip()
    for item in reversed(running.values()):
        match item.kind:
            case "reasoning":
                return "Reasoning…"
            case "text":
                return "Writing…"
            case "tool" if item.awaits:
                return f"{VERBS.get(item.name, item.name)} {item.title}: {item.awaits}…"
            case "tool":
                return f"Preparing {item.name}…" if item.name else "Preparing…"
            case "compaction":
                return "Compacting the context…"
            case _:
                continue
    return "Waiting for the model…"


def elapsed(seconds: float) -> str:
    """A duration as people say it: 0s, 59s, 2m05s, 1h02m."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
