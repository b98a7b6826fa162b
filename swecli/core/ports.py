"""Behaviour that packages of one level need of each other. ``app.py`` wires the implementations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from swecli.core.protocol.events import ModelView, Question
from swecli.core.protocol.messages import Message


class BlobRef(Struct, frozen=True):
    """A stored result. ``size`` is bytes."""

    id: str
    tool: str
    size: int


class BlobError(Exception):
    """A result can't be stored or given back; the message says why and what to do."""


class BlobStore(Protocol):
    """Large results that left the context. Both methods may wait for the disk: not for the event loop."""

    def put(self, tool: str, content: bytes) -> BlobRef:
        """Store a result. The same content gives the same reference.

        Raises:
            BlobError: it can't be stored.
        """
        ...

    def get(self, ref: str) -> bytes | None:
        """What was stored; None where nothing was stored under this reference.

        Raises:
            BlobError: it is damaged or can't be read.
        """
        ...


class TranscriptHit(Struct, frozen=True):
    """``item`` is the id that gives the whole entry; ``about`` says what it is, on one line."""

    item: str
    excerpt: str
    score: float
    about: str = ""


class CodePlace(Struct, frozen=True):
    """Where a name is: ``line`` counts from 1, ``column`` from 0. ``kind`` is a word such as "class", ``depth`` how
    deep it is in an outline, ``within`` the name of what it is in."""

    path: Path
    line: int
    name: str = ""
    kind: str = ""
    depth: int = 0
    within: str = ""
    column: int = 0


CodeQuestion = Literal["definition", "references", "outline"]
"""About the name at a place, or about a file."""


class CodeError(Exception):
    """There is no answer; the message says why, as a clause."""


class CodeServers(Protocol):
    """What knows the code of a workspace: what is wrong with it, and where names are. Places in a file are given as
    line from 1 and column from 0. Questions raise ``CodeError``."""

    async def expect(self, paths: Sequence[str]) -> None:
        """These files are about to be changed. Returns as soon as they may be."""
        ...

    async def brought(self, paths: Sequence[str], agent: str) -> str:
        """The errors that a change of these files brought, as text for the agent; empty where there are none, or none
        are known in time. Waits 2 s at most."""
        ...

    async def ask(self, what: CodeQuestion, path: Path, line: int = 1, column: int = 0) -> Sequence[CodePlace]: ...

    async def search(self, query: str, path: Path | None) -> Sequence[CodePlace]:
        """Names of the whole project. ``path`` is a file of it."""
        ...


class TranscriptSearch(Protocol):
    """What has left the context of a session. Both methods may take a while: not for the event loop."""

    def search(self, query: str, limit: int) -> Sequence[TranscriptHit]: ...

    def text(self, reference: str) -> str | None:
        """The whole text behind an id, several ids or a range of them; None where nothing has such an id.

        Raises:
            BlobError: it was stored and is damaged or can't be read.
        """
        ...


class SnapshotMeasure(Struct, frozen=True):
    """How large a conversation was at one moment.

    ``token_count`` is that of a whole request to ``model``, without its tail; 0 where no report of the model tells it.
    ``seq`` is the newest event that it knows of. ``sizes`` are the estimated tokens of each message by component, as
    ``counter`` counts them; ``marks`` tell by their equality that a message is the same.
    """

    token_count: int
    seq: int
    model: str
    counter: str = ""
    marks: tuple[str, ...] = ()
    sizes: tuple[tuple[tuple[str, int], ...], ...] = ()


class Snapshot(Struct, frozen=True):
    """The conversation as the model saw it at one moment. ``view`` has names for the messages; None in a snapshot that
    an earlier version wrote."""

    messages: tuple[Message, ...]
    measure: SnapshotMeasure
    view: ModelView | None = None
    state: bytes = b""
    """What all events until then come to, as the engine writes it down; empty: none, the one before stays."""


class SnapshotError(Exception):
    """A snapshot is stored but can't be read; the message says why."""


class Snapshots(Protocol):
    """Where the newest snapshot of a session is kept. All may take the time of a disk."""

    def save_snapshot(self, snapshot: Snapshot) -> str:
        """Keep it in place of the one before. Returns a sentence where that failed."""
        ...

    def get_snapshot(self) -> Snapshot | None:
        """The newest one; None where there is none.

        Raises:
            SnapshotError: it is damaged.
        """
        ...

    def get_measure(self) -> SnapshotMeasure | None:
        """That of the newest one, without reading its messages; None where there is none.

        Raises:
            SnapshotError: it is damaged.
        """
        ...


class EditorError(Exception):
    """The editor could not do it; the message says why."""


class EditorFiles(Protocol):
    """Files as the user's editor has them, with what is not saved yet. Both methods wait for it: not for the event
    loop."""

    @property
    def writes(self) -> bool:
        """Whether files can be written by the editor, so that what it shows stays what is on disk."""
        ...

    def text(self, path: Path) -> str | None:
        """The text of a file; None where the editor has nothing to say of it."""
        ...

    def write(self, path: Path, text: str) -> None:
        """Let the editor have this text, and save it.

        Raises:
            EditorError: it did not.
        """
        ...


class Asker(Protocol):
    """Puts questions to the user and waits. Returns one tuple of labels or free text for each question;
    an empty tuple when the user dismissed them, None when nobody can be asked (headless)."""

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None: ...
