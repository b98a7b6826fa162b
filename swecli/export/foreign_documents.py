"""Session files of Gemini CLI and opencode, whose messages stand in one document or replace each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from swecli.core.protocol.messages import ImagePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.export.foreign_parts import (
    NOT_UNDERSTOOD,
    OF_BRANCHES,
    SUMMARIES,
    Foreign,
    Line,
    blocks_of,
    image_of,
    line_in,
    string_in,
    when,
)

# --- Gemini CLI ------------------------------------------------------------------------------------------------


def gemini(lines: Sequence[Line]) -> Foreign:
    """``session-*.json``, one document, or ``session-*.jsonl``: messages, and lines that change earlier ones."""
    found = Foreign("Gemini CLI")
    messages: dict[str, Line] = {}
    for line in lines:
        update = line_in(line, "$set") or line
        if "$rewindTo" in line:
            _rewind(found, messages, string_in(line, "$rewindTo"))
        elif isinstance(update.get("messages"), list):
            messages = {
                string_in(one, "id") or f"m{place}": one for place, one in enumerate(blocks_of(update["messages"]))
            }
        elif "$set" not in line and "id" in line:
            messages[string_in(line, "id")] = line  # a later line replaces the message
        elif "$set" not in line and "sessionId" not in line:
            found.left_out[NOT_UNDERSTOOD] += 1
        found.title = string_in(update, "summary") or found.title
        folders = update.get("directories")
        if isinstance(folders, list) and folders and isinstance(folders[0], str):
            found.cwd = found.cwd or folders[0]
    for name, message in messages.items():
        _gemini_message(found, name, message)
    return found


def _rewind(found: Foreign, messages: dict[str, Line], name: str) -> None:
    names = [*messages]
    for gone in names[names.index(name) if name in messages else 0 :]:
        del messages[gone]
        found.left_out[OF_BRANCHES] += 1


def _gemini_message(found: Foreign, name: str, message: Line) -> None:
    at = when(message.get("timestamp"))
    match message.get("type"):
        case "user":
            for part in _gemini_parts(message.get("content")):
                if not isinstance(part, ReasoningPart):
                    found.add(part, at)
        case "gemini":
            found.model = string_in(message, "model") or found.model
            for thought in blocks_of(message.get("thoughts")):
                text = "\n".join(filter(None, (string_in(thought, "subject"), string_in(thought, "description"))))
                if text:
                    found.add(ReasoningPart(text, "summary"), at, name)
            for part in _gemini_parts(message.get("content")):
                found.add(part, at, name)
            calls = blocks_of(message.get("toolCalls"))
            for call in calls:
                arguments = json.dumps(call.get("args", {}), ensure_ascii=False)
                found.add(ToolCallPart(string_in(call, "id"), string_in(call, "name"), arguments), at, name)
            for call in calls:
                if (result := _gemini_result(call)) is not None:
                    found.add(result, when(call.get("timestamp")) or at)
        case "info" | "error" | "warning":
            pass  # lines for the screen
        case _:
            found.left_out[NOT_UNDERSTOOD] += 1


def _gemini_parts(content: object) -> Iterator[Part]:
    """Texts, thoughts and images of a content; calls and results are in the message's own list."""
    if isinstance(content, str):
        yield TextPart(content)
        return
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield TextPart(block)
            continue
        for one in blocks_of(block):
            if text := string_in(one, "text"):
                yield ReasoningPart(text) if one.get("thought") is True else TextPart(text)
            elif (image := image_of(line_in(one, "inlineData"))) is not None:
                yield image


def _gemini_result(call: Line) -> ToolResultPart | None:
    """The result of a call; None if there is none."""
    texts: list[str] = []
    images: list[ImagePart] = []
    for block in blocks_of(call.get("result")):
        answer = line_in(block, "functionResponse")
        response = line_in(answer, "response")
        if answer:
            said = response.get("output", response.get("error"))
            texts.append(said if isinstance(said, str) else json.dumps(response, ensure_ascii=False))
        for part in (*_gemini_parts(block), *_gemini_parts(answer.get("parts"))):
            if isinstance(part, ImagePart):
                images.append(part)
            elif isinstance(part, TextPart):
                texts.append(part.text)
    failed = string_in(call, "status") in ("error", "cancelled")
    if not texts and not images:
        shown = string_in(call, "resultDisplay")
        if not shown and not failed:
            return None
        texts = [shown or string_in(call, "status")]
    return ToolResultPart(string_in(call, "id"), "", "\n".join(texts), failed, tuple(images))


# --- opencode --------------------------------------------------------------------------------------------------

_OPENCODE_ASIDE: Final = frozenset(
    ("step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction")
)
"""Parts without content of their own."""


def opencode(lines: Sequence[Line]) -> Foreign:
    """What ``opencode export`` writes: one document."""
    found = Foreign("opencode")
    about = line_in(lines[0], "info")
    found.cwd, found.title = string_in(about, "directory"), string_in(about, "title")
    messages = blocks_of(lines[0].get("messages"))
    names = [string_in(line_in(message, "info"), "id") for message in messages]
    reverted = string_in(line_in(about, "revert"), "messageID")
    kept = names.index(reverted) if reverted in names else len(messages)
    found.left_out[OF_BRANCHES] += len(messages) - kept
    for place, message in enumerate(messages[:kept]):
        _opencode_message(found, line_in(message, "info"), blocks_of(message.get("parts")), f"a{place}")
    return found


def _opencode_message(found: Foreign, info: Line, parts: Sequence[Line], name: str) -> None:
    at = when(line_in(info, "time").get("created"))
    if info.get("role") == "user":
        for part in parts:
            _opencode_said(found, part, at, "")
        return
    if info.get("role") != "assistant":
        found.left_out[NOT_UNDERSTOOD] += 1
        return
    if info.get("summary") is True and found.said:
        found.left_out[SUMMARIES] += 1
        return
    found.cwd = found.cwd or string_in(line_in(info, "path"), "cwd")
    model = "/".join(filter(None, (string_in(info, "providerID"), string_in(info, "modelID"))))
    found.model = model or found.model
    step, results = 0, list[tuple[ToolResultPart, float]]()
    for part in (*parts, {"type": "step-start"}):
        if part.get("type") == "step-start":  # results belong behind all calls of their step
            for result, ended in results:
                found.add(result, ended)
            step, results = step + 1, []
        elif part.get("type") == "tool":
            state = line_in(part, "state")
            arguments = json.dumps(state.get("input", {}), ensure_ascii=False)
            found.add(ToolCallPart(string_in(part, "callID"), string_in(part, "tool"), arguments), at, f"{name}.{step}")
            results += _opencode_result(part, state, at)
        else:
            _opencode_said(found, part, at, f"{name}.{step}")


def _opencode_said(found: Foreign, part: Line, at: float, name: str) -> None:
    match part.get("type"):
        case "text":
            if part.get("synthetic") is not True and part.get("ignored") is not True:
                found.add(TextPart(string_in(part, "text")), at, name)
        case "reasoning" if name:
            if text := string_in(part, "text"):
                found.add(ReasoningPart(text), at, name)
        case "file":
            if (image := image_of({"image_url": part.get("url")})) is not None:
                found.add(image, at, name)
        case kind if kind not in _OPENCODE_ASIDE:
            found.left_out[NOT_UNDERSTOOD] += 1
        case _:
            pass


def _opencode_result(part: Line, state: Line, at: float) -> list[tuple[ToolResultPart, float]]:
    """The result of a call with its time, if it has ended."""
    failed = state.get("status") == "error"
    if not failed and state.get("status") != "completed":
        return []
    text = string_in(state, "error" if failed else "output")
    pictures = (image_of({"image_url": one.get("url")}) for one in blocks_of(state.get("attachments")))
    images = tuple(image for image in pictures if image is not None)
    ended = when(line_in(state, "time").get("end")) or at
    return [(ToolResultPart(string_in(part, "callID"), "", text, failed, images), ended)]
