"""The stored sessions: search, preview, continue in place, delete."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from swecli.assembly.session_list import SessionList, StoredSession
from swecli.block_text import block_lines
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.tools.base import readable_size
from swecli.figures import plural, tokens
from swecli.tui.greeting import age
from swecli.tui.screens.list_screen import Ask, Entry, ListPage, Previews, heading, narrowed, read_or_say

SEARCHED = 2
"""Characters from which the content is searched too."""
LEAST = 20
"""Width of a title, in cells, below which the list leaves out cost, tokens, messages and age, in this order."""
PAUSE = 0.15
"""Seconds without another key before that search starts."""

Continue = Callable[[StoredSession], None]


class SessionsPage(ListPage):
    """``resume`` gets the selected session, ``notify`` a sentence for the user, ``ask`` confirms before a session is
    deleted. ``present`` is the id of the open session, ``folder`` the current folder: only its sessions are listed
    unless ``everywhere``. ``clock`` is Unix seconds."""

    def __init__(
        self,
        port: SessionList,
        resume: Continue,
        notify: Callable[[str], None],
        ask: Ask,
        *,
        present: str = "",
        folder: str = "",
        everywhere: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__("Sessions", "type to search titles, folders and messages")
        self._port = port
        self._resume = resume
        self._notify = notify
        self._ask = ask
        self._present = present
        self._folder = folder
        self._everywhere = everywhere or not folder
        self._found_in: dict[str, str] = {}
        """Matching places in the content, by session."""
        self._searched = ""
        self._clock = clock
        self._sessions: dict[str, StoredSession] = {}
        self._previews = Previews(self, self._preview)

    def begin(self) -> None:
        self.view.start(self._read)

    async def _read(self) -> None:
        sessions = await read_or_say(self, self._port.read)
        if sessions is None:
            return
        self._sessions = {session.id: session for session in sessions}
        if all(session.folder != self._folder for session in sessions):
            self._everywhere = True
        self._list()
        if not sessions:
            self.view.say((TextBlock("No stored sessions yet. This one is being stored."),))

    def _list(self) -> None:
        listed = [session for session in self._sessions.values() if self._everywhere or session.folder == self._folder]
        self.entries = entries(listed, self._present, self._clock())
        self.view.show()

    def switch(self) -> None:
        """Switch between this folder's sessions and all."""
        if self._folder:
            self._everywhere = not self._everywhere
            self._list()

    def typed(self, text: str) -> None:
        words = _words(text)
        if len(words) >= SEARCHED:
            self.view.start(lambda: self._search(words), "search")

    async def _search(self, words: str) -> None:
        """Search the sessions' content. Meanwhile the list shows matches by title."""
        await asyncio.sleep(PAUSE)
        hits = await asyncio.to_thread(self._port.search, words)
        if _words(self.view.text) == words:
            self._found_in, self._searched = dict(hits), words
            self._previews.forget()
            self.view.show()

    def matching(self, query: str) -> Sequence[Entry]:
        """Sessions with the words in title, folder or id, then those with the words in their content."""
        named = narrowed(self.entries, query)
        if _words(query) != self._searched:
            return named
        there = {entry.name for entry in named}
        content = [entry for entry in self.entries if entry.name in self._found_in and entry.name not in there]
        return [*named, *([heading("In the content"), *content] if content else [])]

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        return self._previews.of(entry)

    async def _preview(self, name: str) -> Sequence[DisplayBlock]:
        session = self._sessions[name]
        try:
            blocks = await asyncio.to_thread(self._port.preview, session)
        except ValueError as error:
            blocks = (TextBlock(str(error), "error"),)
        facts = (session.id, session.model or "no model", session.branch, readable_size(session.size), session.folder)
        head = TextBlock(" · ".join(filter(None, facts)), "dim")
        more: list[DisplayBlock] = []
        if session.away:
            more.append(TextBlock(f"! {session.away}", "warning"))
        if session.parent:
            more.append(TextBlock(f"forked from {session.parent}", "dim"))
        if name in self._found_in:
            more.append(TextBlock(f"found: {self._found_in[name]}"))
        shown = " ".join(" ".join(line for block in blocks for line in block_lines(block)).split())
        if session.first and session.first != session.title and session.first.rstrip("…") not in shown:
            more.append(TextBlock(f"began with: {session.first}", "dim"))
        return (head, *more, *blocks)

    def key_note(self, entry: Entry | None) -> str:
        folders = f"tab {'this folder' if self._everywhere else 'other folders'}" if self._folder else ""
        if entry is None:
            return folders
        enter = "enter says how to continue it" if self._sessions[entry.name].away else "enter continues it here"
        delete = f"{self.view.keymap.shown('remove')} deletes it"
        return " · ".join(filter(None, (enter, delete, folders, "↑↓ move")))

    def choose(self, entry: Entry) -> None:
        session = self._sessions[entry.name]
        if session.id == self._present:
            self._notify("This session is already open")
        elif session.away:
            self._notify(session.away)
        else:
            self._resume(session)

    def remove(self, entry: Entry | None) -> None:
        session = self._sessions.get(entry.name) if entry is not None else None
        if session is None:
            return
        if session.id == self._present:
            self._notify("This session is open here; /clear starts another one")
        elif session.open_elsewhere:
            self._notify("This session is open in another swecli; close it there first")
        else:
            self._ask(
                f"Delete {session.title or session.id}?",
                ("Delete it", "with its results and recorded file changes; not undoable"),
                lambda: self.view.start(lambda: self._deleted(session)),
            )

    async def _deleted(self, session: StoredSession) -> None:
        try:
            self._notify(await asyncio.to_thread(self._port.delete, session))
        except ValueError as error:
            self._notify(str(error))
            return
        self._sessions.pop(session.id, None)
        if self.view.shows(self):
            self._list()


def _words(text: str) -> str:
    """The search text, without a leading slash, which some users type."""
    return " ".join(text.removeprefix("/").split())


def entries(sessions: Sequence[StoredSession], present: str, now: float) -> list[Entry]:
    """The sessions under their folders, in the given order. One that is open in another swecli shows that instead of
    its age."""
    out: list[Entry] = []
    folder: str | None = None
    for session in sessions:
        if session.folder != folder:
            folder = session.folder
            out.append(heading(folder))
        cells = (
            session.title or "(no words)",
            "open" if session.open_elsewhere else age(now - session.updated),
            plural(session.messages, "message"),
            f"{tokens(session.tokens)} tokens",
            session.cost,
        )
        mark = "●" if session.id == present else "○" if session.open_elsewhere else "!" if session.away else " "
        tone = "dim" if session.away else "plain"
        out.append(
            Entry(
                *(session.id, cells, tone, f"{session.model} {session.folder} {session.branch} {session.first}", mark),
                least=LEAST,
            )
        )
    return out
