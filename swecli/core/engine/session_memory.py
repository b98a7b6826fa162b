"""The memory of a session: what it begins with, the notes that it keeps, and the model's scratchpad."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from swecli.core.context_management.memory_section import MemoryText
from swecli.core.context_management.work_log import notes_lines
from swecli.core.engine.instruction_news import InstructionNews
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import MemoryOptions, Services
from swecli.core.memory.places import NOTES
from swecli.core.memory.session_notes import Lines, NotesError, write_notes
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import MemoryLoaded, Notice


class SessionMemory:
    """Of one session; a subagent's keeps nothing (``inner``)."""

    def __init__(
        self, services: Services, recorder: Recorder, tell_model: Callable[[str, str], None], *, inner: bool
    ) -> None:
        self._options = services.memory
        self._context = services.context
        self._cwd = services.workspace.cwd
        self._recorder = recorder
        self._news = InstructionNews(services.instruction_files, recorder, tell_model)
        self._log = recorder.reductions.work
        self._todos: tuple[Todo, ...] = ()
        self._written: Lines = {}
        self._inner = inner
        self._keeps = not inner

    def adopt(self, options: MemoryOptions) -> None:
        """From now on notes are kept as these options say; what was done before in this session is noted too."""
        self._options = options
        self._keeps = not self._inner

    def start(self, *, resumed: bool) -> None:
        """What was in the prompt when the session began stays there when it goes on, so that its bytes are the same."""
        known, memory = self._recorder.state.memory, self._context.memory
        if resumed:
            self._context.adopt_memory(MemoryText(known.text, known.lean) if known is not None else MemoryText())
        elif memory.text and self._keeps:
            self._recorder.emit(MemoryLoaded(memory.text, memory.lean))
        self._log.absorb(self._recorder.ledger)
        self._todos = self._recorder.state.todos
        self._written = self._lines()

    @property
    def note(self) -> str:
        """The scratchpad for the tail of a request; empty where nothing is on it."""
        text = self._recorder.state.scratchpad
        return f"Your scratchpad:\n{text}" if text else ""

    async def look(self) -> None:
        """Before a request: what is new in instruction files."""
        await self._news.look()

    async def keep(self) -> None:
        """After a step: bring the session notes up to date, where something was done that is worth a note."""
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
            if self._options.why_no_notes:
                self._recorder.emit(Notice(self._options.why_no_notes, "info", "memory"))
            return
        await self._write(lines)

    async def undo(self) -> str:
        """Take out of the notes what this session put in, and put nothing more in. Returns what was done, a sentence.

        Raises:
            NotesError: the file can't be written.
        """
        self._keeps = False
        folder, written = self._options.notes, self._written
        if folder is None or not written:
            return "This session has put nothing into the session notes."
        self._written = {}
        changed = await asyncio.to_thread(write_notes, folder, written, {}, self._options.title)
        done = "What this session noted is taken out of" if changed else "Nothing of this session is in"
        return f"{done} {NOTES}; it notes nothing more."

    def _lines(self) -> Lines:
        return notes_lines(self._log, self._recorder.state.todos, self._cwd, self._options.cover)

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
        if changed and not there:  # in later sessions it is no news
            text = f"Notes of this session are kept in .swecli/memory/{NOTES}."
            self._recorder.emit(Notice(text, "info", "memory", "/memory undo removes them again"))
