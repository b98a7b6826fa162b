"""Hooks from Claude Code's settings files, in their original format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from swecli.core.config.documents import Document, read_document
from swecli.core.hooks.hook import EVENTS, TIMEOUT, Hook, HookEvent, HookKind, HookSource
from swecli.core.llm.json_values import as_list, as_object, is_list, is_object
from swecli.core.permissions.types import RuleEffect
from swecli.figures import plural

FILES = (".claude/settings.json", ".claude/settings.local.json")
LONGEST = 86_400.0
"""Seconds."""
_EVENTS: Mapping[str, HookEvent] = MappingProxyType({event: event for event in EVENTS})


class ClaudeHooks(Struct, frozen=True):
    """``notices`` report ignored parts. ``disabled``: the file turns hooks off."""

    hooks: tuple[Hook, ...] = ()
    notices: tuple[str, ...] = ()
    disabled: bool = False


def read_claude_settings(path: Path, source: HookSource) -> ClaudeHooks:
    """The hooks of one file; empty if it does not exist. Invalid parts are ignored and reported with their line. Links
    are followed only to the user's own."""
    document = read_document(path, "json", "its hooks are ignored", link=source == "user")
    if document is None:
        return ClaudeHooks()
    notices = [*document.problems]
    settings = document.content or {}
    permissions = _part(settings, "permissions", document, notices)
    if lost := _lost_rules(permissions):
        notices.append(f"{path}: {lost}.")
    hooks = tuple(hooks_of(_part(settings, "hooks", document, notices), document, ("hooks",), source, notices))
    disabled = settings.get("disableAllHooks")
    if disabled not in (None, True, False):
        notices.append(f"{document.at('disableAllHooks')}: disableAllHooks is neither true nor false; it is ignored.")
    return ClaudeHooks(hooks, tuple(notices), disabled is True)


def _part(table: Mapping[str, Any], name: str, document: Document, notices: list[str]) -> Mapping[str, Any]:
    """The object in a field; if something else is there, an empty one with a notice."""
    value = table.get(name)
    fields = as_object(value)
    if value is not None and not isinstance(value, dict):
        notices.append(f"{document.at(name)}: {name} is not an object; it is ignored.")
    return fields


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
    document = read_document(path, "json", "its rules are not read")
    if document is None:
        return ()
    if document.content is None:
        raise ValueError(" ".join(document.problems).rstrip("."))
    permissions = as_object(document.content.get("permissions"))
    effects: tuple[RuleEffect, ...] = ("deny", "ask", "allow")
    return tuple(
        ClaudeRule(effect, rule.strip(), path)
        for effect in effects
        for rule in as_list(permissions.get(effect))
        if isinstance(rule, str) and rule.strip()
    )


def _lost_rules(permissions: Mapping[str, Any]) -> str:
    """What rules that would stop a call do here, as a clause; empty without such rules. Others lose nothing but
    comfort."""
    counts = {name: len(as_list(permissions.get(name))) for name in ("deny", "ask")}
    if not any(counts.values()):
        return ""
    told = " and ".join(f"permissions.{name} ({plural(count, 'rule')})" for name, count in counts.items() if count)
    return f"swecli does not apply {told}; `swecli permissions import` shows and copies them"


def hooks_of(
    events: Mapping[str, Any], document: Document, keys: tuple[str, ...], source: HookSource, notices: list[str]
) -> Iterator[Hook]:
    """The hooks of a table of events, to which ``keys`` lead in its document. ``notices`` get sentences about ignored
    parts."""
    for name, groups in events.items():
        event = _EVENTS.get(name)
        if event is None:
            notices.append(f"{document.at(*keys, name)}: hooks.{name} is ignored: swecli has no such event.")
            continue
        for at, group in _objects(groups, (*keys, name), document, notices):
            matcher = group.get("matcher", "")
            for place_of, entry in _objects(group.get("hooks"), (*at, "hooks"), document, notices):
                location = document.at(*place_of)
                kind, command, problem = _action(entry)
                if problem or not isinstance(matcher, str):
                    problem = problem or "its matcher is not text"
                    notices.append(f"{location}: a hook for {name} is ignored: {problem}.")
                    continue
                condition, wakes = entry.get("if"), entry.get("asyncRewake") is True
                if ignored := _ignored(entry):
                    notices.append(f"{location}: a hook for {name}: {ignored}.")
                yield Hook(
                    event,
                    command,
                    matcher,
                    _limit(entry.get("timeout")) or TIMEOUT,
                    source,
                    location,
                    condition=condition if isinstance(condition, str) else "",
                    background=entry.get("async") is True or wakes,
                    kind=kind,
                    headers=_texts(entry.get("headers")) if kind == "http" else (),
                    variables=tuple(
                        variable for variable in as_list(entry.get("allowedEnvVars")) if isinstance(variable, str)
                    ),
                    wakes=str(entry.get("rewakeMessage") or "") if wakes else None,
                )


def _objects(
    value: object, keys: tuple[str, ...], document: Document, notices: list[str]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The objects of a list with their keys; other shapes are reported."""
    if not is_list(value):
        notices.append(f"{document.at(*keys)}: {keys[-1]} of {'.'.join(keys[:2])} is not a list; it is ignored.")
    for number, item in enumerate(as_list(value)):
        at = (*keys, str(number))
        if is_object(item):
            yield at, item
        else:
            notices.append(f"{document.at(*at)}: an entry of {'.'.join(keys[:2])} is not an object; it is ignored.")


def _action(entry: Mapping[str, Any]) -> tuple[HookKind, str, str]:
    """Kind and text of what the hook does, or the problem with it as a clause."""
    kind = entry.get("type", "command")
    match kind:
        case "command":
            return "command", *_command(entry)
        case "prompt":
            text = entry.get("prompt")
            return (
                ("prompt", text, "") if isinstance(text, str) and text.strip() else ("prompt", "", "it has no prompt")
            )
        case "http":
            url = entry.get("url")
            if isinstance(url, str) and url.startswith(("http://", "https://")) and url.isprintable():
                return "http", url, ""
            return "http", "", "its url is no web address"
        case _:
            return "command", "", f"swecli runs hooks of the types command, prompt and http, not {str(kind)[:40]!r}"


def _command(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The command, or the problem with it as a clause."""
    command = entry.get("command")
    if not isinstance(command, str) or not command.strip():
        return "", "it has no command"
    if entry.get("shell", "bash") != "bash":
        return "", f"swecli runs hooks in bash, not {str(entry['shell'])[:40]!r}"
    words = as_list(entry.get("args"))
    if words and all(isinstance(word, str) for word in words):
        import shlex

        return shlex.join([command, *(str(word) for word in words)]), ""
    return command, ""


def _texts(value: object) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in as_object(value).items() if isinstance(text, str))


_KNOWN = frozenset(
    (
        *("type", "command", "args", "timeout", "if", "async", "statusMessage", "description", "shell"),
        *("prompt", "url", "headers", "allowedEnvVars", "asyncRewake", "rewakeMessage", "rewakeSummary"),
    )
)


def _ignored(entry: Mapping[str, Any]) -> str:
    """Fields of a hook without effect here, as a clause; empty if there are none."""
    unknown = sorted(key for key in entry if key not in _KNOWN)
    told = [f"{', '.join(unknown)[:200]} {'has' if len(unknown) == 1 else 'have'} no effect"] if unknown else []
    if not isinstance(entry.get("if", ""), str | None):
        told.append("its condition is not text and has no effect")
    if entry.get("async") not in (None, True, False):
        told.append("async is neither true nor false, so swecli waits for it")
    if entry.get("timeout") is not None and _limit(entry["timeout"]) is None:
        told.append(f"its timeout is not a number of seconds, so it is {TIMEOUT:g}")
    return "; ".join(told)


def _limit(value: object) -> float | None:
    """A time limit in seconds; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    return min(float(value), LONGEST)
