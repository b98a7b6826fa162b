"""The condition of a hook, ``if`` in settings: a permission rule that says which calls it is about. Pure, but for the
words of a command.

A hook may be there to stop something, so what can't be told counts as meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.hooks.hook import Hook, HookEvent, matcher_problem
from swecli.core.permissions.commands import words_match
from swecli.core.permissions.rules import RuleError, parse_rule
from swecli.core.permissions.shell.scan import ScanError
from swecli.core.permissions.shell.unpack import started
from swecli.core.permissions.types import Effects

OF_CALLS: frozenset[HookEvent] = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"))
"""Events that are about a call."""


def problems(hook: Hook) -> Sequence[str]:
    """What of a hook has not the effect that it seems to have, as clauses."""
    late = "swecli waits for it all the same, as it ends then" if hook.background and hook.event == "SessionEnd" else ""
    return [one for one in (matcher_problem(hook.matcher), _problem(hook.condition, hook.event), late) if one]


def _problem(condition: str, event: HookEvent) -> str:
    if not condition:
        return ""
    if event not in OF_CALLS:
        return f"its condition {condition!r} is about a call, and {event} is not, so it never runs"
    try:
        parse_rule(condition)
    except RuleError as error:
        return f"its condition {condition!r} is no permission rule ({error}), so it runs at every call that matches"
    return ""


def holds(condition: str, tool: str, effects: Effects, roots: tuple[str, ...], home: str) -> bool:
    """Whether a hook with this condition is about the call: for a command, whether any part of it is meant."""
    try:
        pattern = parse_rule(condition)
    except RuleError:
        return True
    if pattern.tools and not pattern.matches_tool(tool):
        return False
    match pattern.kind:
        case "command":
            try:
                return any(words_match(pattern.at_home(home), one) for one in started(effects.command or "", {}))
            except ScanError:
                return True
        case "domain":
            host = (effects.network or "").lower().rstrip(".")
            return host == pattern.domain or host.endswith(f".{pattern.domain}")
        case "read" | "write" if pattern.path is not None:
            touched = effects.writes if pattern.kind == "write" else (*effects.reads, *effects.writes)
            path = pattern.path
            return any(path.matches(one, roots, home, wide=True) for one in touched)
        case _:
            return True
