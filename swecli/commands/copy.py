"""/copy: the newest answer, or code of it, to the clipboard."""

from __future__ import annotations

import re
from collections.abc import Sequence

from swecli.commands.base import Clip, CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.messages import Message, TextPart

USAGE = "/copy copies the last answer, /copy code its last block of code, /copy code 2 the second one."
_WANTED = re.compile(r"(?:(answer)|(code)(?:\s+(\d{1,4}))?)?", re.IGNORECASE)
_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\2[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    wanted = _WANTED.fullmatch(arguments)
    if wanted is None:
        return CommandResult.text(f"{USAGE} In the transcript, c copies the block at the cursor.", "error")
    answer = last_answer(port.view.messages)
    if not answer:
        return CommandResult.text("There is no answer yet that could be copied.", "warning")
    if not wanted[2]:
        return _result(answer, "answer")
    blocks = code_blocks(answer)
    number = int(wanted[3]) if wanted[3] else len(blocks)
    if not 1 <= number <= len(blocks):
        count = len(blocks) or "no"
        return CommandResult.text(f"The last answer has {count} block{'' if count == 1 else 's'} of code.", "warning")
    return _result(blocks[number - 1], "code")


def _result(text: str, what: str) -> CommandResult:
    return CommandResult(clip=Clip(text, what), instead=(TextBlock(text),))


def last_answer(messages: Sequence[Message]) -> str:
    """The text of the newest message of the model that has any; empty where there is none."""
    for message in reversed(messages):
        if message.role == "assistant":
            text = "".join(part.text for part in message.parts if isinstance(part, TextPart)).strip()
            if text:
                return text
    return ""


def code_blocks(text: str) -> list[str]:
    """What is between the fences of a Markdown text, in order; the last may have no end."""
    return [found[3].removesuffix("\n") for found in _FENCE.finditer(text)]


COPY = SlashCommand("copy", "Copy the last answer, or code of it", _run, arguments="[code [n]]")
