"""/copy and /find."""

from __future__ import annotations

import pytest

from swecli.commands.base import Clip, CommandResult
from swecli.commands.registry import CommandCall, parse
from swecli.commands.session import code_blocks
from swecli.core.protocol.messages import Message, TextPart
from swecli.headless.outcome import run_slash as headless
from tests.commands.support import CommandSession

ANSWER = "First:\n```python\na = 1\n\nb = 2\n```\nthen\n~~~~\n```\n~~~~\nand\n```\nopen"


def session(*answers: str) -> CommandSession:
    made = CommandSession()
    said = [Message("assistant", (TextPart(text),)) for text in answers]
    made.view.messages = (Message("user", (TextPart("hi"),)), *said, Message("user", (TextPart("bye"),)))
    return made


async def result(port: CommandSession, line: str) -> CommandResult:
    found = parse(line)
    assert isinstance(found, CommandCall)
    return await found.command.run(port, found.arguments)


def test_code_is_what_is_between_fences() -> None:
    assert code_blocks(ANSWER) == ["a = 1\n\nb = 2", "```", "open"]
    assert code_blocks("no ``` fence") == []
    assert code_blocks("```inline``` code\n```py\nx\n```") == ["x"]


def test_code_in_a_list_or_a_quote_has_no_indentation_of_it() -> None:
    listed = "1. Do:\n\n   ```py\n   if a:\n       b\n   ```\n   - and\n\n     ```sh\n     ls\n     ```\n"
    assert code_blocks(f"{listed}\n> ```\n> quoted\n> ```\n") == ["if a:\n    b", "ls", "quoted"]


@pytest.mark.parametrize(
    ("line", "clip"),
    [
        ("/copy", Clip(ANSWER, "answer")),
        ("/copy code", Clip("open", "code")),
        ("/copy CODE 1", Clip("a = 1\n\nb = 2", "code")),
    ],
)
async def test_what_is_copied(line: str, clip: Clip) -> None:
    assert (await result(session("old", ANSWER, " "), line)).clip == clip


async def test_what_is_not_there_is_not_copied() -> None:
    for port, line, said in (
        (session(), "/copy", "no answer to copy yet"),
        (session("plain"), "/copy code", "no code blocks"),
        (session("```\nx\n```"), "/copy code 2", "1 code block"),
        (session("x"), "/copy everything", "/copy code"),
    ):
        assert (await result(port, line)).clip is None
        assert said in await port.slash(line)


async def test_without_a_screen_the_text_is_printed() -> None:
    found = parse("/copy code 1")
    assert isinstance(found, CommandCall)
    assert (await headless(session(ANSWER), found)).text == "a = 1\n\nb = 2"


async def test_find_hands_its_words_on() -> None:
    made = await result(session(), "/find two words")
    assert (made.screen, made.argument) == ("find", "two words")
