"""Session files of agents that keep plain chats: kimi-cli and mistral-vibe, with the messages of the Chat Completions
API, and aider, with Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.export.foreign_parts import (
    NOT_UNDERSTOOD,
    Foreign,
    Line,
    blocks_of,
    line_in,
    string_in,
    texts_of,
    when,
)
from swecli.lazy_pattern import lazy_pattern

# --- kimi-cli, mistral-vibe --------------------------------------------------------------------------------------

_KIMI_ASIDE: Final = frozenset(("_system_prompt", "_usage", "_checkpoint"))
_ROLES: Final = frozenset(("system", "user", "assistant", "tool"))
_NOTE: Final = "<system>", "</system>"
"""What kimi-cli itself says in a message or a result stands between these."""
_FAILED: Final = "<system>ERROR", "<tool_error>"


def is_chat(line: Line) -> bool:
    """Whether a line is a message of a chat, or one that kimi-cli keeps among them."""
    return (
        "type" not in line and string_in(line, "role") in _KIMI_ASIDE | _ROLES and ("content" in line or "id" in line)
    )


def chat(lines: Sequence[Line]) -> Foreign:
    """``context.jsonl`` of kimi-cli; ``messages.jsonl`` of mistral-vibe, or the one document of its first versions."""
    whole = lines[0] if isinstance(lines[0].get("messages"), list) else {}
    messages = blocks_of(whole["messages"]) if whole else lines
    found = Foreign("another chat program")
    if any(string_in(message, "role") in _KIMI_ASIDE for message in messages):
        found.agent = "kimi-cli"
    elif whole or any("message_id" in message for message in messages):
        found.agent = "mistral-vibe"
    about = line_in(whole, "metadata")
    found.cwd = string_in(line_in(about, "environment"), "working_directory")
    at = when(about.get("start_time"))
    for place, message in enumerate(messages):
        _message(found, message, f"a{place}", at)
    return found


def _message(found: Foreign, message: Line, name: str, at: float) -> None:
    text, images = texts_of(message.get("content"))
    match string_in(message, "role"):
        case "user":
            if message.get("injected") is not True and not _is_note(text):
                found.add(TextPart(text), at)
                for image in images:
                    found.add(image, at)
        case "assistant":
            _answer(found, message, text, name, at)
        case "tool":
            failed = text.startswith(_FAILED)
            found.add(ToolResultPart(string_in(message, "tool_call_id"), "", text, failed, images), at)
        case role if role not in _KIMI_ASIDE | _ROLES:
            found.left_out[NOT_UNDERSTOOD] += 1
        case _:
            pass


def _answer(found: Foreign, message: Line, text: str, name: str, at: float) -> None:
    thoughts = [string_in(block, "think") for block in blocks_of(message.get("content"))]
    for thought in (string_in(message, "reasoning_content"), *thoughts):
        if thought:
            found.add(ReasoningPart(thought), at, name)
    found.add(TextPart(text), at, name)
    for call in blocks_of(message.get("tool_calls")):
        function = line_in(call, "function")
        arguments = string_in(function, "arguments") or "{}"
        found.add(ToolCallPart(string_in(call, "id"), string_in(function, "name"), arguments), at, name)


def _is_note(text: str) -> bool:
    start, end = _NOTE
    return text.startswith(start) and text.rstrip().endswith(end) and text.count(start) == 1


# --- aider -------------------------------------------------------------------------------------------------------

_AIDER: Final = lazy_pattern(r"(?m)^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?$")
EARLIER: Final = "of earlier chats"


def is_aider(text: str) -> bool:
    return _AIDER.search(text) is not None


def aider(text: str) -> Foreign:
    """The newest chat with messages of ``.aider.chat.history.md``: lines of the user start with ``####``, those of
    aider itself with ``>``, and the others are the model's. Commands to aider are no messages."""
    found = Foreign("aider")
    text = text.replace("\r\n", "\n")
    starts = [*_AIDER.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for start, end in reversed([*zip(starts, ends, strict=True)]):
        if found.said:
            found.left_out[EARLIER] += text.count("\n", start.end(), end)
        else:
            _aider_chat(found, text[start.end() : end], when(start[1]))
    return found


def _aider_chat(found: Foreign, text: str, at: float) -> None:
    user, answer = list[str](), list[str]()
    turn = 0
    of_user = False

    def close() -> None:
        nonlocal turn
        said, answered = "\n".join(user).strip(), "\n".join(answer).strip()
        if said and (answered or not said.startswith(("/", "!"))):
            turn += 1
            found.add(TextPart(said), at)
        if turn:
            found.add(TextPart(answered), at, f"a{turn}")
        user.clear()
        answer.clear()

    for line in text.split("\n"):  # other characters that end a line for Python belong to what was said
        if line.startswith("####"):
            if not of_user:
                close()
            user.append(line.removeprefix("####").strip())
        elif not line.startswith(">"):
            answer.append(line)
        of_user = line.startswith("####")
    close()
