"""One message without a screen: opens the session and prints what comes of it."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.stopping import Stop, run_until_stopped

if TYPE_CHECKING:
    from swecli.core.answer_schema import AnswerSchema
    from swecli.core.protocol.blocks import DisplayBlock


def run_headless(options: LaunchOptions) -> int:
    return run_until_stopped(lambda stop: _headless(options, stop))


async def _headless(options: LaunchOptions, stop: Stop) -> int:
    gc.disable()  # nothing loaded now is garbage, and collections delay the start
    from swecli.app import open_session
    from swecli.commands.registry import parse
    from swecli.headless.printers import never_began, start_failed
    from swecli.headless.run import run

    gc.freeze()
    gc.enable()
    if options.input_format == "text" and parse(options.prompt) is not None:
        options = replace(options, needs_model=False)
    schema = None
    if options.json_schema is not None:
        try:
            schema = answer_schema(options.json_schema)
        except StartError as error:
            start_failed(options.output_format, error)
            raise
        told = "\n\n".join(filter(None, (options.append_system_prompt, schema.instruction)))
        options = replace(options, append_system_prompt=told)
    opening = asyncio.ensure_future(open_session(options))
    try:
        with stop.calling(opening.cancel):
            session = await opening
    except StartError as error:
        start_failed(options.output_format, error)
        raise
    except asyncio.CancelledError:
        if stop.code is None:
            raise
        return never_began(options.output_format, stop.code)
    return await run(
        session,
        options,
        {"settings": _settings_shown, "permissions": _permissions_shown},
        stop,
        schema,
        lambda: _large_message(options),
    )


def _large_message(options: LaunchOptions) -> float:
    from swecli.tui.preferences import read_preferences

    return read_preferences(options).large_message


def answer_schema(text: str) -> AnswerSchema:
    """The schema of ``--json-schema``.

    Raises:
        StartError: it is invalid.
    """
    from swecli.core.answer_schema import AnswerSchema, SchemaProblem

    try:
        return AnswerSchema.read(text)
    except SchemaProblem as error:
        raise StartError(f"--json-schema: {error}", ExitCode.BAD_INPUT) from None


def _settings_shown(options: LaunchOptions, words: str) -> tuple[DisplayBlock, ...]:
    """The settings with all words in name, value or meaning, in place of the screen."""
    from swecli.assembly.settings import SettingsFiles
    from swecli.command_line.config import settings_table
    from swecli.core.protocol.blocks import TextBlock

    wanted = words.casefold().split()
    settings = [
        each
        for each in SettingsFiles(options, dict(os.environ)).described()
        if all(word in f"{each.name} {each.about} {'' if each.secret else each.shown}".casefold() for word in wanted)
    ]
    return (settings_table(settings) if settings else TextBlock(f"No setting matches {words!r}; /config lists all."),)


def _permissions_shown(options: LaunchOptions, _words: str) -> tuple[DisplayBlock, ...]:
    """All rules, in place of the screen."""
    from swecli.assembly.permissions import FolderRules
    from swecli.command_line.permissions import rules_block

    return (rules_block(FolderRules(LaunchOptions(options.cwd), dict(os.environ))),)
