"""Memory of a session: memories at its start, and its notes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.core.context_management.memory_section import MemoryText
from swecli.core.context_management.work_log import notes_lines
from swecli.core.engine.companion import Companion, EndReason, Step
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import MemoryOptions, Services
from swecli.core.memory.places import NOTES
from swecli.core.memory.session_notes import Lines, NotesError, write_notes
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import MemoryLoaded, Notice

if TYPE_CHECKING:
    pass


class SessionMemory(Companion):
    """The memory in the prompt, and the notes that a session takes."""

    def __init__(self, services: Services, recorder: Recorder, prompts: PromptRecord) -> None:
        self._options = services.memory
        self._prompts = prompts
        self._context = services.context
        self._cwd = services.workspace.cwd
        self._recorder = recorder
        self._log = recorder.reductions.work
        self._todos: tuple[Todo, ...] = ()
        self._written: Lines = {}
        self._keeps = True

    def adopt(self, options: MemoryOptions) -> None:
        """Keep notes according to these options, including on earlier work of this session."""
        self._options = options
        self._keeps = True

    def start(self, *, resumed: bool) -> None:
        """Record the memory in the prompt. A session of an earlier version, which stored nothing else of its prompt,
        keeps its original one, so that the prompt's bytes stay the same."""
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
        places = self._options.places
        return (("Memory", "" if places.user is None or places.project else "off here; /memory on"),)

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
        if self._options.notes is None:
            self._keeps = False
            return
        await self._write(lines)

    async def undo(self) -> str:
        """Remove this session's entries from the notes and stop adding any. Returns the result as a sentence.

        Raises:
            NotesError: the file can't be written.
        """
        self._keeps = False
        folder, written = self._options.notes, self._written
        if folder is None or not written:
            return "This session added nothing to the session notes."
        self._written = {}
        changed = await asyncio.to_thread(write_notes, folder, written, {}, self._options.title)
        done = "This session's notes were removed from" if changed else "This session has no notes in"
        return f"{done} {NOTES}; it takes no more notes."

    def _lines(self) -> Lines:
        left = self._recorder.ledger.left
        return notes_lines(self._log, self._recorder.state.todos, self._cwd, self._options.cover, left)

    async def _write(self, lines: Lines) -> None:
        folder = self._options.notes
        assert folder is not None
        try:
            there = await asyncio.to_thread((folder / NOTES).exists)
            changed = await asyncio.to_thread(write_notes, folder, self._written, lines, self._options.title)
        except NotesError as error:
            self._keeps = False
            self._recorder.emit(Notice(str(error), "warning", "memory"))
            return
        self._written = lines
        if changed and not there:  # not news in later sessions
            text = f"This session takes notes in .swecli/memory/{NOTES}."
            self._recorder.emit(Notice(text, "info", "memory", "/memory undo removes them"))
