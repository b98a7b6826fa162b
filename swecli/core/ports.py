"""Behaviour that packages of one level need of each other. ``app.py`` wires the implementations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from swecli.core.protocol.events import Question
from swecli.core.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class BlobRef:
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


@dataclass(frozen=True, slots=True)
class TranscriptHit:
    """``item`` is the id that gives the whole entry; ``about`` says what it is, on one line."""

    item: str
    excerpt: str
    score: float
    about: str = ""


class TranscriptSearch(Protocol):
    """What has left the context of a session. Both methods may take a while: not for the event loop."""

    def search(self, query: str, limit: int) -> Sequence[TranscriptHit]: ...

    def text(self, reference: str) -> str | None:
        """The whole text behind an id, several ids or a range of them; None where nothing has such an id.

        Raises:
            BlobError: it was stored and is damaged or can't be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class SnapshotMeasure:
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The conversation as the model saw it at one moment."""

    messages: tuple[Message, ...]
    measure: SnapshotMeasure


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
