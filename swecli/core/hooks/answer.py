"""The meaning of a hook's output and exit status, and the combined decision of several hooks. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from msgspec import Struct

from swecli.core.hooks.hook import JUDGES, HookEvent
from swecli.core.workspace.command_output import as_read
from swecli.figures import cut_line
from swecli.lazy_pattern import lazy_pattern

Ending = Literal["exited", "timeout", "skipped", "not started", "changed", "not allowed"]


class Ran(Struct, frozen=True):
    """Result of one hook's process. ``exit_status`` is as shells report it, None if swecli ended the process or could
    not start it; ``problem`` gives the reason. ``cut``: the output exceeded the limit."""

    ending: Ending
    exit_status: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration: float = 0.0
    cut: bool = False
    problem: str = ""


Wish = Literal["none", "allow", "ask", "block"]
"""From the least to the most strict."""
_STRICT: tuple[Wish, ...] = get_args(Wish)

MOST_CONTEXT = 10_000
"""Characters of one hook's text for the model."""
MOST_MESSAGE = 500
"""Characters of one hook's message for the user."""


class Answer(Struct, frozen=True):
    """The answer of one hook. ``reason`` explains its wish, ``context`` goes to the model, ``message`` to the user.
    ``stop`` ends the work. ``problem`` is a fault of the hook, for the user. ``quiet`` hides its output."""

    wish: Wish = "none"
    reason: str = ""
    context: str = ""
    message: str = ""
    stop: bool = False
    stop_reason: str = ""
    updated: Mapping[str, Any] | None = None
    problem: str = ""
    quiet: bool = False
    output: str | None = None
    """Replacement for the call's output."""


_BLOCKS: frozenset[HookEvent] = frozenset(
    (
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PreCompact",
        "Stop",
        "SubagentStop",
    )
)
"""Events at which "block" has an effect: the work stops, or the model learns the reason."""
_PLAIN_CONTEXT: frozenset[HookEvent] = frozenset(("UserPromptSubmit", "SessionStart", "PreCompact"))
"""Events at which plain text on stdout goes to the model."""
_OBJECT = lazy_pattern(r"^\{", re.MULTILINE)
_NO_REASON = "It gave no reason."
_NAMED: Mapping[str, Wish] = {"allow": "allow", "approve": "allow", "ask": "ask", "deny": "block", "block": "block"}


def read_answer(event: HookEvent, ran: Ran, name: str = "", number: int = 0) -> Answer:
    """Interpret a hook's process. ``name`` and ``number`` identify it for the user."""
    match ran.ending:
        case "skipped":
            return Answer(problem="skipped by you")
        case "timeout":
            return _silent(event, name, f"stopped after {ran.duration:.0f} s, its time limit")
        case "not started":
            return _silent(event, name, ran.problem)
        case "changed":
            return _silent(event, name, f"{ran.problem}; /hooks allow {number} allows it again", "not run: ")
        case "not allowed":
            return _silent(event, name, f"{ran.problem}; /hooks allow {number} allows it", "not run: ")
        case "exited":
            pass
    stderr = ran.stderr.strip()
    if ran.exit_status == 2:
        reason = _bounded(stderr or ran.stdout.strip() or _NO_REASON, MOST_CONTEXT)
        return Answer("block", reason) if event in _BLOCKS else Answer(problem=cut_line(f"exit 2: {reason}", 300))
    if ran.exit_status != 0:
        why = f"{_status(ran.exit_status)}{f': {stderr}' if stderr else ''}"
        unable = ran.exit_status is None or ran.exit_status in _CAN_NOT_RUN or _signal(ran.exit_status) > 0
        return _silent(event, name, why) if unable else Answer(problem=cut_line(why, 300))
    return _of_output(event, ran)


def _silent(event: HookEvent, name: str, why: str, before: str = "") -> Answer:
    """The answer of a hook that gave none, for the reason ``why``."""
    problem = cut_line(f"{before}{why}", 300)
    if event not in JUDGES:
        return Answer(problem=problem)
    asked = f"The {event} hook {name or '?'} did not judge this call: {why}"
    return Answer("ask", cut_line(asked, 300), problem=problem)


_CAN_NOT_RUN: Mapping[int, str] = {126: "not executable", 127: "not found"}
"""Exit statuses of a shell that could not run a command: the hook itself, or a program in its last step."""
_SIGNALS = 64


def _signal(status: int) -> int:
    """The signal that ended a command, otherwise 0: scripts may also exit with 255."""
    return status - 128 if 128 < status <= 128 + _SIGNALS else 0


def _status(status: int | None) -> str:
    if status is None:
        return "its exit status is unknown"
    if signal := _signal(status):
        return f"killed by signal {signal}"
    return f"exit {status} ({_CAN_NOT_RUN[status]})" if status in _CAN_NOT_RUN else f"exit {status}"


def _of_output(event: HookEvent, ran: Ran) -> Answer:
    text = ran.stdout.removeprefix("\ufeff").strip()
    if event in _PLAIN_CONTEXT and not text.startswith("{"):
        return Answer(context=_bounded(text, MOST_CONTEXT))
    begin = _OBJECT.search(text)  # a shell's start-up files may have written something before it
    if begin is None:
        return Answer()
    try:
        data, end = json.JSONDecoder().raw_decode(text, begin.start())
    except (ValueError, RecursionError) as error:
        if begin.start():  # words of a program that only prints
            return Answer()
        if ran.cut:
            return Answer(problem="its output is too long to parse as JSON and was ignored")
        return Answer(problem=cut_line(f"its output looks like JSON but is not ({error}) and was ignored", 300))
    if text[end:].lstrip(" \t")[:1] not in ("", "\r", "\n"):
        return Answer(problem="its output looks like JSON but text follows on the line, so it was ignored")
    return _of_json(event, cast("dict[str, Any]", data))


def _of_json(event: HookEvent, data: Mapping[str, Any]) -> Answer:
    inner = data.get("hookSpecificOutput")
    specific: Mapping[str, Any] = cast("Mapping[str, Any]", inner) if isinstance(inner, dict) else {}
    problems: list[str] = []
    wish, reason = _wish(event, data, specific, problems)
    message = _text(data, "systemMessage", problems)
    if wish == "block" and not reason:  # public plugins give their reason there
        reason, message = message or _NO_REASON, ""
    updated = _updated(specific)
    context = _text(specific, "additionalContext", problems) or _text(data, "additionalContext", problems)
    return Answer(
        wish,
        _bounded(reason, MOST_CONTEXT),
        _bounded(context, MOST_CONTEXT),
        _bounded(message, MOST_MESSAGE),
        data.get("continue") is False,
        _bounded(_text(data, "stopReason", problems), MOST_MESSAGE),
        updated,
        cut_line("; ".join(problems), 300),
        data.get("suppressOutput") is True,
        _seen(_output(specific)) if event == "PostToolUse" else None,
    )


def _wish(
    event: HookEvent, data: Mapping[str, Any], specific: Mapping[str, Any], problems: list[str]
) -> tuple[Wish, str]:
    inner = specific.get("decision")
    if isinstance(inner, dict):  # of PermissionRequest
        decision = cast("Mapping[str, Any]", inner)
        word, reason = decision.get("behavior"), _text(decision, "message", problems)
    elif "permissionDecision" in specific:
        word, reason = specific["permissionDecision"], _text(specific, "permissionDecisionReason", problems)
    else:
        word, reason = data.get("decision"), _text(data, "reason", problems)
    if word is None or event not in _BLOCKS:
        return "none", reason
    wish = _NAMED.get(word.lower()) if isinstance(word, str) else None
    if wish is None:
        problems.append(f"its decision {word!r} is unknown and was ignored")
    if wish == "ask" and event not in JUDGES:
        wish = None
    return wish or "none", reason


def _updated(specific: Mapping[str, Any]) -> Mapping[str, Any] | None:
    updated = specific.get("updatedInput")
    return cast("Mapping[str, Any]", updated) if isinstance(updated, dict) else None


def _seen(output: str | None) -> str | None:
    return None if output is None else as_read(output)


def _output(specific: Mapping[str, Any]) -> str | None:
    """Replacement output, in any of the forms that Claude Code's tools use."""
    output = specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput"))
    if output is None or isinstance(output, str):
        return output
    if isinstance(output, dict):
        fields = cast("dict[str, Any]", output)
        streams = [fields[name] for name in ("stdout", "stderr") if isinstance(fields.get(name), str) and fields[name]]
        if "stdout" in fields:
            return "\n".join(streams)
        if isinstance(fields.get("content"), str):
            return str(fields["content"])
        output = fields["content"] if isinstance(fields.get("content"), list) else fields
    if isinstance(output, list):
        texts = [_part_text(part) for part in cast("list[object]", output)]
        if texts and None not in texts:
            return "\n".join(filter(None, texts))
    return json.dumps(output, ensure_ascii=False)


def _part_text(part: object) -> str | None:
    text = cast("dict[str, object]", part).get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else None


def _text(data: Mapping[str, Any], key: str, problems: list[str]) -> str:
    value = data.get(key)
    if value is None or isinstance(value, str):
        return (value or "").strip()
    problems.append(f"its {key} is not a string and was ignored")
    return ""


def _bounded(text: str, most: int) -> str:
    """The text as people see it, of bounded length."""
    text = as_read(text)
    return text if len(text) <= most else f"{text[:most]}\n[… {len(text) - most:,} more characters left out]"


class Verdict(Struct, frozen=True):
    """Combined decision of all hooks of one event."""

    wish: Wish = "none"
    reason: str = ""
    context: str = ""
    stop: bool = False
    stop_reason: str = ""
    updated: Mapping[str, Any] | None = None
    output: str | None = None
    by: str = ""
    """Names of the hooks that block or end the turn."""


NOTHING = Verdict()


def decide(answers: Sequence[Answer]) -> Verdict:
    """The strictest wish with all of its reasons, every context in the order of the hooks, and the first replacement
    input."""
    wishes: list[Wish] = ["none", *(answer.wish for answer in answers)]
    wish = max(wishes, key=_STRICT.index)
    stopping = next((answer for answer in answers if answer.stop), None)
    return Verdict(
        wish,
        _joined(answer.reason for answer in answers if answer.wish == wish),
        _joined(answer.context for answer in answers),
        stopping is not None,
        (stopping.stop_reason or stopping.reason) if stopping is not None else "",
        next((answer.updated for answer in answers if answer.updated is not None), None),
        next((answer.output for answer in answers if answer.output is not None), None),
    )


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(text for text in texts if text))
