"""Interfaces between packages of one level. ``app.py`` wires the implementations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from swecli.core.protocol.context_events import ModelView
from swecli.core.protocol.messages import Message
from swecli.core.protocol.request_events import Question


class BlobRef(Struct, frozen=True):
    """A stored result. ``size`` is bytes."""

    id: str
    tool: str
    size: int


class BlobError(Exception):
    """A result can't be stored or read back; the message gives the reason and the remedy."""


class BlobStore(Protocol):
    """Large results that left the context. Both methods may block for the disk: not for the event loop."""

    def put(self, tool: str, content: bytes) -> BlobRef:
        """Store a result. The same content gives the same reference.

        Raises:
            BlobError: it can't be stored.
        """
        ...

    def get(self, ref: str) -> bytes | None:
        """The stored result; None for an unknown reference.

        Raises:
            BlobError: it is damaged or can't be read.
        """
        ...


class TranscriptHit(Struct, frozen=True):
    """``item`` is the id for the whole entry; ``about`` describes it on one line."""

    item: str
    excerpt: str
    score: float
    about: str = ""


class TranscriptSearch(Protocol):
    """Content that left the context of a session. Both methods may take a while: not for the event loop."""

    def search(self, query: str, limit: int) -> Sequence[TranscriptHit]: ...

    def text(self, reference: str) -> str | None:
        """The whole text behind an id, several ids or a range of them; None for an unknown id.

        Raises:
            BlobError: it was stored and is damaged or can't be read.
        """
        ...


class SnapshotMeasure(Struct, frozen=True):
    """Size of a conversation at one moment.

    ``token_count`` is that of a whole request to ``model``, without its tail; 0 without a report of the model. ``seq``
    is the newest event included. ``sizes`` are the estimated tokens of each message by component, in units of
    ``counter``; equal ``marks`` identify equal messages.
    """

    token_count: int
    seq: int
    model: str
    counter: str = ""
    marks: tuple[str, ...] = ()
    sizes: tuple[tuple[tuple[str, int], ...], ...] = ()


class Snapshot(Struct, frozen=True):
    """The conversation as the model saw it at one moment. ``view`` has names for the messages; None in a snapshot of an
    earlier version."""

    messages: tuple[Message, ...]
    measure: SnapshotMeasure
    view: ModelView | None = None
    state: bytes = b""
    """The reduction of all events until then, serialised by the engine; empty: none, the previous one stays."""


class SnapshotError(Exception):
    """A stored snapshot can't be read; the message gives the reason."""


class Snapshots(Protocol):
    """Storage of a session's newest snapshot. All methods may block for the disk."""

    def save_snapshot(self, snapshot: Snapshot) -> str:
        """Store it in place of the previous one. Returns a sentence if that failed."""
        ...

    def get_snapshot(self) -> Snapshot | None:
        """The newest one; None without one.

        Raises:
            SnapshotError: it is damaged.
        """
        ...

    def get_measure(self) -> SnapshotMeasure | None:
        """The measure of the newest one, without reading its messages; None without one.

        Raises:
            SnapshotError: it is damaged.
        """
        ...


class EditorError(Exception):
    """The editor failed; the message gives the reason."""


class EditorFiles(Protocol):
    """Files in the user's editor, with unsaved changes. Both methods wait for it: not for the event loop."""

    @property
    def writes(self) -> bool:
        """Whether files can be written by the editor, so that its display stays in step with the disk."""
        ...

    def text(self, path: Path) -> str | None:
        """The text of a file; None if the editor does not have it."""
        ...

    def write(self, path: Path, text: str) -> None:
        """Pass this text to the editor, and save it.

        Raises:
            EditorError: it failed.
        """
        ...


class Authorisation(Protocol):
    """The headers by which a server knows the user, if they change while a session runs. Both methods may raise
    ``ProviderError``."""

    async def headers(self) -> Mapping[str, str]:
        """Those of a request now."""
        ...

    async def after_refusal(self, sent: Mapping[str, str]) -> Mapping[str, str] | None:
        """Those of a second attempt after the server refused the ones that were ``sent``; None: there are no better
        ones."""
        ...

    def answered(self, headers: Mapping[str, str]) -> None:
        """A server answered with these headers."""
        ...


class Asker(Protocol):
    """Puts questions to the user and waits. Returns one tuple of labels or free text for each question; an empty tuple
    if the user dismissed them, None in an unattended run (headless)."""

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None: ...
