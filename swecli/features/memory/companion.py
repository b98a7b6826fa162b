"""Memory in a session: what its prompt has, what changes meanwhile, and the notes that it takes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.note_topics import MEMORY_NEWS
from swecli.core.context_management.prompt import MemoryText, Prompt
from swecli.core.engine.companion import Companion, EndReason, Step
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.budget import MEMORY
from swecli.core.protocol.events import MemoryLoaded, Notice
from swecli.features.memory.note_lines import notes_lines
from swecli.features.memory.places import NOTES, MemoryFile, MemoryPlaces
from swecli.features.memory.section import memory_section
from swecli.features.memory.session_notes import Lines, NotesError, write_notes
from swecli.features.memory.tool import MemoryTool

LEAST_TOKENS = 100
"""Enough to name a memory."""
CHARACTERS = 3
"""Characters of a token, at least."""


class MemoryOptions(Struct, frozen=True):
    """Where the memories are, and what a session stores."""

    places: MemoryPlaces = MemoryPlaces(None, None)
    notes: Path | None = None
    """Folder of session notes; None: no notes."""
    cwd: Path = Path()
    """The folder that notes are about."""
    title: str = ""
    """Heads a new notes file."""
    cover: Callable[[str], str] = str
    """Masks keys and passwords."""
    turn_on: Callable[[], tuple[str, MemoryOptions | None]] = lambda: ("This folder can't be trusted from here.", None)
    """Trusts the folder if only its memories depend on that. Returns the result as a sentence, and the new options;
    None if nothing changes. Blocks on the disk."""
    max_file_bytes: int = 65_536
    tokens: int = 800
    """Most tokens of memories at once."""


class SessionMemory(Companion):
    """The memory in the prompt, and the notes that a session takes."""

    def __init__(
        self,
        options: MemoryOptions,
        recorder: Recorder,
        notes: Notes,
        prompts: PromptRecord,
        context: ContextManager,
        follow_settings: Callable[[], Awaitable[None]],
        tool: MemoryTool | None = None,
    ) -> None:
        """``tool`` is the model's, if it has one."""
        self.options = options
        self._recorder = recorder
        self._notes = notes
        self._prompts = prompts
        self._context = context
        self._follow_settings = follow_settings
        self._tool = tool
        self._told_of: Prompt | None = None
        self._statements: Sequence[Statement] = ()
        """The differences of memories from ``_told_of``."""
        self._log = recorder.reductions.work
        self._todos: tuple[Todo, ...] = ()
        self._written: Lines = {}
        self._keeps = True

    async def turn_on(self) -> str:
        """Enable memories of this folder, if nothing else depends on its trust: notes include the earlier work of this
        session. Returns the result as a sentence."""
        result, options = await asyncio.to_thread(self.options.turn_on)
        if options is None:
            return result
        self.options = options
        self._keeps = True
        if self._tool is not None:
            self._tool.places = options.places
        try:
            await self._follow_settings()
        except ValueError as error:
            return f"{result} {error}"
        return result

    @property
    def remembered(self) -> str:
        """The memories in the system prompt; empty without any."""
        return self._context.memory.text

    def start(self, *, resumed: bool) -> None:
        """Record the memory in the prompt. A session of an earlier version, which stored nothing else of its prompt,
        keeps its original one, so that the prompt's bytes stay the same."""
        self.due = resumed  # only then a prompt of an earlier run can go on
        known, memory = self._recorder.state.memory, self._context.memory
        stored, built_anew = bool(self._recorder.state.prompts), bool(self._prompts.built_anew)
        if resumed and not stored:
            self._context.adopt_memory(MemoryText(known.text, known.lean) if known is not None else MemoryText())
        elif memory.text and (built_anew or not resumed):
            self._recorder.emit(MemoryLoaded(memory.text, memory.lean))
        self._log.absorb(self._recorder.ledger)
        self._todos = self._recorder.state.todos
        self._written = self._lines()

    def status(self) -> Sequence[tuple[str, str]]:
        places = self.options.places
        return (("Memory", "" if places.user is None or places.project else "off here; /memory on"),)

    async def before_request(self) -> None:
        """Say in what the memories differ from those in an earlier run's prompt, if that goes on."""
        earlier = self._prompts.earlier
        if earlier is not self._told_of:
            self._told_of = earlier
            self._statements = await self._differences(earlier)
        for statement in self._statements:
            self._notes.state(statement)

    async def _differences(self, earlier: Prompt | None) -> Sequence[Statement]:
        before = {part.name: part for part in earlier.sources if part.source == MEMORY} if earlier is not None else {}
        present = {part.name: part for part in self._context.texts.memory.sources} if earlier is not None else {}
        written = {change.after for change in self._recorder.ledger.changes}  # by the model itself too
        changed = {name for name, part in present.items() if before.get(name) != part and part.digest not in written}
        places, most = self.options.places, self.options.max_file_bytes
        files = await asyncio.to_thread(places.files, most) if changed else ()
        files = [file for file in files if file.place.path in changed]
        told = [topic.removeprefix(MEMORY_NEWS) for topic in self._notes.topics(MEMORY_NEWS)]
        removed = [name for name in (*before, *told) if name not in present and not self._removed(name)]
        return (
            *memory_news(files, dict.fromkeys(removed), self.options.tokens),
            *(_as_before(name) for name in told if name in present and name not in changed),
        )

    def _removed(self, name: str) -> bool:
        """Whether the model removed this memory itself."""
        path = str(self.options.places.place(name).file)
        return any(change.path == path and change.after is None for change in self._recorder.ledger.changes)

    async def after_step(self, step: Step) -> None:
        await self._keep()

    async def close(self, reason: EndReason) -> None:
        await self._keep()

    async def _keep(self) -> None:
        """Update the session notes if there was noteworthy work."""
        if not self._keeps:
            return
        todos = self._recorder.state.todos
        if not self._log.absorb(self._recorder.ledger) and todos == self._todos:
            return
        self._todos = todos
        lines = self._lines()
        if lines == self._written:
            return
        if self.options.notes is None:
            self._keeps = False
            return
        await self._write(lines)

    async def undo(self) -> str:
        """Remove this session's entries from the notes and stop adding any. Returns the result as a sentence.

        Raises:
            NotesError: the file can't be written.
        """
        self._keeps = False
        folder, written = self.options.notes, self._written
        if folder is None or not written:
            return "This session added nothing to the session notes."
        self._written = {}
        changed = await asyncio.to_thread(write_notes, folder, written, {}, self.options.title)
        done = "This session's notes were removed from" if changed else "This session has no notes in"
        return f"{done} {NOTES}; it takes no more notes."

    def _lines(self) -> Lines:
        left = self._recorder.ledger.left
        return notes_lines(self._log, self._recorder.state.todos, self.options.cwd, self.options.cover, left)

    async def _write(self, lines: Lines) -> None:
        folder = self.options.notes
        assert folder is not None
        try:
            there = await asyncio.to_thread(os.path.exists, folder / NOTES)
            changed = await asyncio.to_thread(write_notes, folder, self._written, lines, self.options.title)
        except NotesError as error:
            self._keeps = False
            self._recorder.emit(Notice(str(error), "warning", "memory"))
            return
        self._written = lines
        if changed and not there:  # not news in later sessions
            text = f"This session takes notes in .swecli/memory/{NOTES}."
            self._recorder.emit(Notice(text, "info", "memory", "/memory undo removes them"))


def memory_news(files: Sequence[MemoryFile], gone: Iterable[str], tokens: int) -> Iterator[Statement]:
    """What the model must be told of new, changed and removed memories, in about so many tokens: what does not fit is
    named."""
    left = tokens
    for file in files:
        name = file.place.path
        section = memory_section([file], max(left, LEAST_TOKENS))
        left -= len(section) // CHARACTERS
        text = f"{name} has changed since this conversation began. This holds in place of what you know of it.\n\n"
        yield Statement(MEMORY_NEWS + name, f"Memory changed: {name}", text + section if section else "")
    for name in gone:
        yield Statement(MEMORY_NEWS + name, f"Memory removed: {name}", f"{name} no longer exists.")


def _as_before(name: str) -> Statement:
    return Statement(MEMORY_NEWS + name, f"Memory changed: {name}", "", f"{name} is as in the system prompt again.")
