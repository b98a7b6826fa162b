"""Invocations of Markdown commands and skills: their expansion, the commands in their text, and changes of their
files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from swecli.core.context_management.note_topics import SKILL_NEWS
from swecli.core.context_management.prompt import Prompt
from swecli.core.context_management.prompts import harmless
from swecli.core.engine.companion import Companion, Joined
from swecli.core.engine.consent import REJECTED
from swecli.core.engine.model_call import Call
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.extensions.catalogue import NOTHING, Catalogue, Change, Waiting
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.protocol.budget import SKILLS
from swecli.core.protocol.commands import Invoke
from swecli.core.protocol.events import (
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ListedCommand,
    Notice,
    Queued,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.tools.registry import ToolRegistry
from swecli.core.tools.run_command import RunCommand
from swecli.core.tools.session_tools import SOURCE, SkillTool
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

    def __init__(self, services: Services, recorder: Recorder, scheduler: Scheduler) -> None:
        self._services = services
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


class ExtensionNews(Companion):
    """Checks the files for changes between turns and reports them to the model and the user, who hears of them from the
    session, not from its subagents (``inner``)."""

    def __init__(
        self, services: Services, recorder: Recorder, notes: Notes, prompts: PromptRecord, *, inner: bool
    ) -> None:
        self._files = services.extension_files
        self._seen = self._files.seen if self._files is not None else None
        self._listed = _skills_of(self._seen.catalogue if self._seen is not None else NOTHING)
        """Digests of the skills at the start of this run, which its system prompt lists."""
        self._inner = inner
        self._tools = services.tools
        self._recorder = recorder
        self._notes = notes
        self._prompts = prompts
        self._told_of: tuple[Prompt | None, Catalogue] | None = None
        self._statement = Statement(SKILL_NEWS, "", "")
        self._title = ""

    def start(self, *, resumed: bool) -> None:
        """Offer the skills that have come since an earlier run without any."""
        if resumed and self._files is not None and not self._inner:
            offer_skills(self._tools, self._files)

    async def joined(self, message: Joined) -> None:
        if not message.first or self._files is None or self._seen is None:
            return
        change, self._seen = await asyncio.to_thread(self._files.news, self._seen)
        if change is None:
            return
        self._title = change.summary
        if self._inner:
            return
        offer_skills(self._tools, self._files)
        for line in _lines(change):
            self._recorder.emit(Notice(line, "warning", "extensions"))
        if change.summary and not change.model:
            self._recorder.emit(Notice(change.summary, "info", "extensions"))

    async def before_request(self) -> None:
        """Say in what the skills differ from those that the system prompt lists."""
        if self._seen is None:
            return
        earlier, now = self._prompts.earlier, self._seen.catalogue
        if self._told_of is None or self._told_of[0] is not earlier or self._told_of[1] is not now:
            self._told_of = earlier, now
            self._statement = self._skill_news(earlier, now)
        self._notes.state(self._statement)

    def _skill_news(self, earlier: Prompt | None, now: Catalogue) -> Statement:
        listed = self._listed
        if earlier is not None:
            listed = {part.name: part.digest for part in earlier.sources if part.source == SKILLS}
        text = ""
        if listed != _skills_of(now) and not (self._inner and self._tools.get(SkillTool.name) is None):
            from swecli.core.extensions.reading import skill_news

            text = skill_news(listed, now)
        title = self._title or "Skills changed since the earlier run"
        return Statement(SKILL_NEWS, title, text, "The skills are again those of the system prompt.")


def _skills_of(catalogue: Catalogue) -> Mapping[str, str]:
    """Digests of the files of skills for the model, by name."""
    return {name: skill.origin.digest for name, skill in catalogue.skills.items() if skill.for_model}


def offer_skills(tools: ToolRegistry, files: ExtensionFiles) -> None:
    """Offer the skill tool once there is a skill."""
    if tools.get(SkillTool.name) is None and any(skill.for_model for skill in files.now.skills.values()):
        tools.settle(SOURCE, (SkillTool(lambda: files.now.skills),))


def _lines(change: Change) -> list[str]:
    lines = [*change.problems[:5]]
    if len(change.problems) > 5:
        lines.append(f"{len(change.problems) - 5} more problems: /skills, /commands and /agents list them")
    waiting = change.waiting
    if len(waiting) == 1:
        lines.append(unapproved(waiting[0]))
    elif waiting:
        names = ", ".join(one.origin.shown for one in waiting[:5])
        more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
        lines.append(
            f"{names}{more} are new or have changed since you trusted this folder; /skills, /commands and /agents "
            "with the word approve enable them."
        )
    return lines
