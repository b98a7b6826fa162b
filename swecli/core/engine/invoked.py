"""Invocations of Markdown commands and skills: their expansion, and the commands in their text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swecli.core.context_management.prompts import harmless
from swecli.core.engine.consent import REJECTED
from swecli.core.engine.model_call import Call
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.extensions.catalogue import Waiting
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.protocol.commands import Invoke
from swecli.core.protocol.events import (
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ListedCommand,
    Queued,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.tools.run_command import RunCommand
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.extensions.markdown_commands import Invocation

MOST_LISTED = 500
_ENDING = lazy_pattern(r"exit status (-?\d+) after [\d.]+ s\n")
"""First line of a command's result for the model."""


class NotInvoked(Exception):
    """An invocation that is not sent; the message says why. ``rejected``: the user rejected one of its commands."""

    def __init__(self, message: str, *, rejected: bool = False) -> None:
        super().__init__(message)
        self.rejected = rejected


def listed_commands(files: ExtensionFiles | None) -> tuple[ListedCommand, ...]:
    """Commands and skills that can be invoked, for front-ends without a list of their own."""
    if files is None:
        return ()
    return tuple(ListedCommand(one.name, one.description[:200], one.hint) for one in files.now.invocables[:MOST_LISTED])


def invocation_of(files: ExtensionFiles | None, message: Invoke | Queued) -> Invocation:
    """Resolve an invocation against the current files.

    Raises:
        NotInvoked: no active command or skill has this name, or its text can't be expanded.
    """
    if isinstance(message, Invoke):
        name, arguments = message.name, message.arguments
    else:
        name, _, arguments = message.text.removeprefix("/").partition(" ")
    name = name.lower()
    now = files.now if files is not None else None
    called = now.invocable(name) if now is not None else None
    if now is None or called is None:
        waiting = next((one for one in now.waiting if one.name == name), None) if now is not None else None
        if waiting is not None:
            raise NotInvoked(f"/{name} was not sent. {unapproved(waiting)}")
        raise NotInvoked(f"Unknown command or skill /{name}. Nothing was sent.")
    from swecli.core.extensions.markdown_commands import InvocationError, invocation

    try:
        return invocation(called, arguments, now.invocable)
    except InvocationError as error:
        raise NotInvoked(str(error)) from error


def unapproved(waiting: Waiting) -> str:
    return (
        f"{waiting.origin.shown} is new or has changed since you trusted this folder; /{waiting.kind} approve "
        f"{waiting.name} enables it."
    )


class Invoking:
    """Turns invocations into messages, in the turns of one session."""

    def __init__(self, recorder: Recorder, scheduler: Scheduler) -> None:
        self._recorder = recorder
        self._scheduler = scheduler

    async def send(self, item: str, invocation: Invocation) -> None:
        """Run the commands of an invocation one after the other, then add its message to the conversation as ``item``,
        which has already begun.

        Raises:
            NotInvoked: a command was not allowed, or the message is empty.
        """
        texts: list[str] = []
        for piece in invocation.pieces:
            texts.append(piece if isinstance(piece, str) else await self._output(piece.command, invocation.title))
        text = "".join(texts).strip()
        if not text:
            raise NotInvoked(f"{invocation.title} was not sent: its text is empty.")
        self._recorder.emit(ItemCompleted(item, "ok", (TextPart(text),)))

    async def _output(self, command: str, title: str) -> str:
        item = self._recorder.new_item("t")
        part = ToolCallPart(item, RunCommand.name, json.dumps({"command": command}))
        self._recorder.emit(ItemStarted(item, "tool", RunCommand.name))
        self._recorder.emit(ItemCheckpointed(item, part))
        await self._scheduler.run((Call(item, part),))
        record = self._recorder.ledger.items[item]
        result = next((one for one in record.parts if isinstance(one, ToolResultPart)), None)
        text = result.text if result is not None else ""
        ran = _ENDING.match(text)
        if record.status == "rejected" or (ran is None and record.status != "ok"):
            if text.startswith(REJECTED):
                raise NotInvoked(f"{title} was not sent, because you rejected `{command}`", rejected=True)
            raise NotInvoked(f"{title} was not sent, because `{command}` did not run: {text or record.status}")
        output = text[ran.end() :] if ran is not None else text
        status = f"\n(exit status {ran[1]})" if ran is not None and ran[1] != "0" else ""
        return harmless("" if output == "(no output)" else output) + status
