"""A hook's run in one line, the same on every screen."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.protocol.events import HookRan
from swecli.figures import cut

_DID = {
    "ok": "",
    "blocked": "blocked",
    "asked": "asks for your approval",
    "context": "",
    "stopped": "ended the turn",
    "problem": "failed",
    "skipped": "was skipped",
}
_BLOCKED = {
    "PostToolUse": "objects",
    "PostToolUseFailure": "objects",
    "Stop": "keeps the turn going",
    "SubagentStop": "keeps the subagent going",
}
_MOMENTS = {
    "SessionStart": "when a session starts",
    "SessionEnd": "when a session ends",
    "UserPromptSubmit": "before each message is sent",
    "PreToolUse": "before each {}call",
    "PostToolUse": "after each {}call",
    "PostToolUseFailure": "after each failed {}call",
    "PermissionRequest": "when a {}call needs approval",
    "PreCompact": "before each compaction",
    "PostCompact": "after each compaction",
    "SubagentStart": "when a subagent starts",
    "SubagentStop": "when a subagent ends",
    "Stop": "when a turn ends",
    "Notification": "with each notification",
}
_TOLD_THERE = ("PreToolUse", "PermissionRequest", "UserPromptSubmit")
"""Where hook and reason stand at what was blocked, the call or the message."""
_SHOWN = 60
"""Characters of a command."""


def moment(event: str, matcher: str) -> str:
    """When a hook runs, as the end of a sentence. ``matcher`` is as written; ``*`` and nothing match every call."""
    calls = "" if matcher in ("", "*") else f"{matcher} "
    return _MOMENTS.get(event, f"at {event}").format(calls)


def short_command(command: str) -> str:
    """What a hook is called by: the last part of the path of a single program, else the command."""
    line = " ".join(command.split())
    if " " not in line:
        line = line.rpartition("/")[2].strip("\"'") or line
    return cut(line, _SHOWN)


def running_words(event: str, commands: Sequence[str]) -> str:
    """What is going on while hooks are waited for."""
    more = f" (+{len(commands) - 1} more)" if len(commands) > 1 else ""
    return f"Running the {event} hook {short_command(commands[0])}{more}"


def hook_line(body: HookRan) -> str:
    """What the user reads of a run; empty where it did and said nothing."""
    did = _DID[body.outcome]
    text = " ".join(body.text.split())
    if body.outcome == "blocked":
        if body.event in _TOLD_THERE:
            return ""
        did = _BLOCKED.get(body.event, did)
    if not did and not text:
        return ""
    name = f"{body.event} hook {short_command(body.command)}"
    return f"{name} {did}: {text}" if did and text else f"{name} {did}".rstrip() if did else f"{name}: {text}"
