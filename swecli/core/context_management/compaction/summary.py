"""The summary request: a suffix on the live prefix, so that the provider reads it from its cache; and the
checks that an answer must pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from swecli.core.context_management.prompts import read_prompt
from swecli.core.llm.types import ModelRequest, SystemBlock
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart

EXCERPT = 2_000
"""Characters of a result or of arguments in the serialised form."""
LEAST_CHARACTERS = 40


def suffix_request(request: ModelRequest, focus: str, max_tokens: int) -> ModelRequest:
    """The agent's own request with the instruction as one more user message: byte for byte the live prefix."""
    instruction = Message("user", (TextPart(_instruction(focus, max_tokens)),), "compaction-instruction")
    return replace(
        request, messages=(*request.messages, instruction), tail="", max_output_tokens=max_tokens, effort=None
    )


def chunked(messages: Sequence[Message], size: int, characters: int, most: int) -> list[str]:
    """The conversation as bounded texts, oldest first, for when it is too long for one request: results cut, reasoning
    dropped. A text has as many groups of ``size`` messages as fit; of more than ``most`` texts the oldest are left
    out."""
    groups = ["\n\n".join(map(_serialised, messages[at : at + size])) for at in range(0, len(messages), size)]
    texts: list[str] = []
    for group in reversed(groups):
        if texts and len(group) + len(texts[0]) + 2 <= characters:
            texts[0] = f"{group}\n\n{texts[0]}"
        elif len(texts) == most:
            texts[0] = f"(The beginning is left out.)\n{texts[0]}"
            break
        else:
            texts.insert(
                0, group if len(group) <= characters else f"(The beginning is left out.)\n{group[-characters:]}"
            )
    return texts


def serialised_request(
    request: ModelRequest, focus: str, max_tokens: int, text: str, earlier: str = ""
) -> ModelRequest:
    """One of these texts in one message, with the summary of those before it, which the answer is to carry on."""
    before = (
        f"<summary-so-far>\n{earlier}\n</summary-so-far>\n\nUpdate this summary by what follows.\n\n" if earlier else ""
    )
    prompt = f"{before}<conversation>\n{text}\n</conversation>\n\n{_instruction(focus, max_tokens)}"
    return ModelRequest(
        system=(SystemBlock("You summarise conversations between a user and a coding agent."),),
        tools=(),
        messages=(Message("user", (TextPart(prompt),), "compaction-text"),),
        max_output_tokens=max_tokens,
        session=f"{request.session}-summary",
    )


def _instruction(focus: str, max_tokens: int) -> str:
    text = read_prompt("compaction").replace("{words}", str(max(80, max_tokens * 2 // 3)))
    return f"{text}\n\nThe user asks you to pay attention to: {focus}" if focus else text


def _serialised(message: Message) -> str:
    lines: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text):
                lines.append(f"{message.role}: {text}")
            case ToolCallPart(name=name, arguments=arguments):
                lines.append(f"call {name}: {_cut(arguments)}")
            case ToolResultPart(name=name, text=text):
                lines.append(f"result of {name}: {_cut(text)}")
            case _:
                pass
    return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}… ({len(text):,} characters)"


def unusable(message: Message, sections: Sequence[str] = ()) -> str | None:
    """Why an answer is no summary, or None when it is one."""
    if message.tool_calls:
        return f"it called {message.tool_calls[0].name} instead of writing a summary"
    text = message.text.strip()
    if len(text) < LEAST_CHARACTERS:
        return "it was empty" if not text else f"it was only {json.dumps(text)}"
    response = message.response
    if response is not None and (not response.complete or response.stop.kind == "length"):
        return "it was cut off"
    absent = [section for section in sections if section.casefold() not in text.casefold()]
    return f"it has no section {absent[0]!r}" if absent else None
