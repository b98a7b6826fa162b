"""Hooks from Claude Code's settings files, in their original format."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from swecli.core.hooks.hook import EVENTS, TIMEOUT, Hook, HookEvent, HookSource
from swecli.core.permissions.types import RuleEffect
from swecli.figures import plural

FILES = (".claude/settings.json", ".claude/settings.local.json")
LARGEST = 1_000_000
"""Bytes of a settings file."""
LONGEST = 86_400.0
"""Seconds."""
_EVENTS: Mapping[str, HookEvent] = MappingProxyType({event: event for event in EVENTS})


class ClaudeHooks(Struct, frozen=True):
    """``notices`` report ignored parts. ``disabled``: the file turns hooks off."""

    hooks: tuple[Hook, ...] = ()
    notices: tuple[str, ...] = ()
    disabled: bool = False


def read_claude_settings(path: Path, source: HookSource) -> ClaudeHooks:
    """The hooks of one file; empty if it does not exist. Invalid parts are ignored and reported."""
    try:
        text = _text(path)
    except (FileNotFoundError, NotADirectoryError):
        return ClaudeHooks()
    except (OSError, UnicodeDecodeError) as error:
        return ClaudeHooks((), (f"{path}: cannot read it ({error}); its hooks are ignored.",))
    if text is None:
        return ClaudeHooks((), (f"{path}: not a regular file of at most {LARGEST} bytes; its hooks are ignored.",))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return ClaudeHooks((), (f"{path}: not JSON ({error}); its hooks are ignored.",))
    settings = _object(data)
    notices: list[str] = []
    if lost := _lost_rules(_object(settings.get("permissions"))):
        notices.append(f"{path}: {lost}.")
    hooks = tuple(_hooks(_object(settings.get("hooks")), path, source, notices))
    return ClaudeHooks(hooks, tuple(notices), settings.get("disableAllHooks") is True)


class ClaudeRule(Struct, frozen=True):
    """A permission rule of Claude Code in its file."""

    effect: RuleEffect
    text: str
    file: Path


def read_claude_rules(path: Path) -> tuple[ClaudeRule, ...]:
    """The permission rules of one file, the strictest effect first; empty if it does not exist.

    Raises:
        ValueError: it can't be read; a sentence without its end.
    """
    try:
        text = _text(path)
        permissions = _object(_object(json.loads(text or "")).get("permissions"))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as settings ({error})") from None
    effects: tuple[RuleEffect, ...] = ("deny", "ask", "allow")
    return tuple(
        ClaudeRule(effect, rule.strip(), path)
        for effect in effects
        for rule in _list(permissions.get(effect))
        if isinstance(rule, str) and rule.strip()
    )


def _text(path: Path) -> str | None:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            return None
        return file.read(LARGEST).decode("utf-8-sig")


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _lost_rules(permissions: Mapping[str, Any]) -> str:
    """What rules that would stop a call do here, as a clause; empty without such rules. Others lose nothing but
    comfort."""
    counts = {name: len(_list(permissions.get(name))) for name in ("deny", "ask")}
    if not any(counts.values()):
        return ""
    told = " and ".join(f"permissions.{name} ({plural(count, 'rule')})" for name, count in counts.items() if count)
    return f"swecli does not apply {told}; `swecli permissions import` shows and copies them"


def _hooks(events: Mapping[str, Any], path: Path, source: HookSource, notices: list[str]) -> Iterator[Hook]:
    for name, groups in events.items():
        event = _EVENTS.get(name)
        if event is None:
            notices.append(f"{path}: hooks.{name} is ignored: swecli has no such event.")
            continue
        for group in map(_object, _list(groups)):
            matcher = group.get("matcher", "")
            for entry in map(_object, _list(group.get("hooks"))):
                command, problem = _command(entry)
                if problem or not isinstance(matcher, str):
                    problem = problem or "its matcher is not text"
                    notices.append(f"{path}: a hook for {name} is ignored: {problem}.")
                    continue
                condition = entry.get("if")
                if ignored := _ignored(entry):
                    notices.append(f"{path}: a hook for {name}: {ignored}.")
                yield Hook(
                    event,
                    command,
                    matcher,
                    _seconds(entry.get("timeout")),
                    source,
                    str(path),
                    condition=condition if isinstance(condition, str) else "",
                    background=entry.get("async") is True,
                )


def _command(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The command, or the problem with the hook as a clause."""
    kind, command = entry.get("type", "command"), entry.get("command")
    if kind != "command":
        return "", f'swecli runs only hooks of type "command", not {str(kind)[:40]!r}'
    if not isinstance(command, str) or not command.strip():
        return "", "it has no command"
    words = _list(entry.get("args"))
    if words and all(isinstance(word, str) for word in words):
        import shlex

        return shlex.join([command, *(str(word) for word in words)]), ""
    return command, ""


_KNOWN = frozenset(("type", "command", "args", "timeout", "if", "async", "statusMessage", "description"))


def _ignored(entry: Mapping[str, Any]) -> str:
    """Fields of a hook without effect here, as a clause; empty if there are none."""
    unknown = sorted(key for key in entry if key not in _KNOWN)
    told = [f"{', '.join(unknown)[:200]} {'has' if len(unknown) == 1 else 'have'} no effect"] if unknown else []
    if not isinstance(entry.get("if", ""), str | None):
        told.append("its condition is not text and has no effect")
    if entry.get("async") not in (None, True, False):
        told.append("async is neither true nor false, so swecli waits for it")
    return "; ".join(told)


def _seconds(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    seconds = float(cast("float", value)) if number else TIMEOUT
    return min(seconds, LONGEST) if math.isfinite(seconds) and seconds > 0 else TIMEOUT
