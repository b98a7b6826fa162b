"""Words that a command does not know."""

from __future__ import annotations

from pathlib import Path

from swecli.app import open_session
from swecli.block_text import block_lines
from swecli.commands.base import CommandResult, run_command
from swecli.commands.registry import COMMANDS, find
from swecli.launch import LaunchOptions

WORD = "zzqx"
MODEL = '[[step]]\ntext = "The answer."\n'
TEXTS = {
    "btw": "a question",
    "commit": "a hint, refused here without a repository",
    "model": "a name, and the scripted provider has all",
    "recall": "what to look for among removed items",
    "where": "what to look for in files",
    "compact": "what the summary is about",
    "review": "a focus, refused here without a repository",
}
"""Commands for which any words are a text to send or to look for."""
EMPTY = {"fork", "handoff", "hooks", "lsp", "mcp", "memory", "playbook"}
"""Commands that can name nothing here, and say so whatever they are asked."""


def text_of(result: CommandResult) -> str:
    return "\n".join(line for block in (*result.blocks, *result.instead) for line in block_lines(block))


async def test_each_command_says_what_became_of_a_word_it_does_not_know(tmp_path: Path) -> None:
    script, work = tmp_path / "model.toml", tmp_path / "work"
    script.write_text(MODEL, encoding="utf-8")
    work.mkdir()
    session = await open_session(LaunchOptions(cwd=work, script=script, headless=True, mode="default"))
    silent: list[str] = []
    try:
        for command in COMMANDS:
            result = await run_command(command, session, WORD)
            told = text_of(result)
            named = WORD in told or f"/{command.name} " in told or result.argument == WORD
            if command.name in EMPTY:
                named = told.startswith(("No ", "Nothing ", "Memories "))
            if not named and command.name not in TEXTS:
                silent.append(f"/{command.name} {WORD}: {told[:100]!r}")
        wire = find("wire")
        assert wire is not None
        request = text_of(await run_command(wire, session, WORD))
    finally:
        await session.close()
    assert silent == []
    assert request.startswith(f"The next request with the message “{WORD}”: ")
