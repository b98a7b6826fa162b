"""The stored sessions: found by typing, looked into, continued in place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.figures import tokens
from swecli.tui.backend import SessionsPort, StoredSession
from swecli.tui.greeting import age
from swecli.tui.screens.list_screen import Entry, ListPage, heading, read_or_say

Continue = Callable[[StoredSession], None]


class SessionsPage(ListPage):
    """``resume`` gets the selected session, ``notify`` a sentence for the user. ``present`` is the id of the open
    session, ``clock`` Unix seconds."""

    def __init__(
        self,
        port: SessionsPort,
        resume: Continue,
        notify: Callable[[str], None],
        *,
        present: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__("Sessions", "type to search titles, models, folders and ids")
        self._port = port
        self._resume = resume
        self._notify = notify
        self._present = present
        self._clock = clock
        self._sessions: dict[str, StoredSession] = {}
        self._seen: dict[str, Sequence[DisplayBlock]] = {}

    def begin(self) -> None:
        self.view.start(self._read)

    async def _read(self) -> None:
        found = await read_or_say(self, self._port.read)
        if found is None:
            return
        self._sessions = {session.id: session for session in found}
        self.entries = entries(found, self._present, self._clock())
        self.view.show()
        if not found:
            self.view.say((TextBlock("No stored sessions yet. This one is being stored."),))

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None:
            return ()
        seen = self._seen.get(entry.name)
        if seen is not None:
            return seen
        self.view.start(lambda: self._preview(entry.name), "preview")
        return (TextBlock("…", "dim"),)

    async def _preview(self, name: str) -> None:
        session = self._sessions[name]
        try:
            blocks = await asyncio.to_thread(self._port.preview, session)
        except ValueError as error:
            blocks = (TextBlock(str(error), "error"),)
        head = TextBlock(f"{session.id} · {session.model or 'no model'} · {session.folder}", "dim")
        self._seen[name] = (head, *blocks)
        if self.view.chosen is not None and self.view.chosen.name == name:
            self.view.say(self._seen[name])

    def key_note(self, entry: Entry | None) -> str:
        return "enter continues it here · ↑↓ choose" if entry is not None else ""

    def choose(self, entry: Entry) -> None:
        session = self._sessions[entry.name]
        if session.id == self._present:
            self._notify("This session is already open")
        elif session.away:
            self._notify(session.away)
        else:
            self._resume(session)


def entries(sessions: Sequence[StoredSession], present: str, now: float) -> list[Entry]:
    """The sessions under their folders, in the order given."""
    out: list[Entry] = []
    folder: str | None = None
    for session in sessions:
        if session.folder != folder:
            folder = session.folder
            out.append(heading(folder))
        cells = (
            session.title or "(no words)",
            age(now - session.updated),
            f"{session.messages} {'message' if session.messages == 1 else 'messages'}",
            f"{tokens(session.tokens)} tokens",
            session.cost or "$?",
        )
        mark = "●" if session.id == present else "!" if session.away else " "
        tone = "dim" if session.away else "plain"
        out.append(Entry(session.id, cells, tone, f"{session.model} {session.folder}", mark))
    return out
