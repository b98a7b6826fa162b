"""Display blocks: tool results and previews for people, as data.

A front-end has one renderer per block type. Every text in a block may come from outside (a model, a file, a program)
and is unsanitised; the front-end sanitises it before drawing.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from swecli.core.protocol.messages import Tagged


class TextBlock(Tagged, frozen=True, tag="text"):
    type: ClassVar[Literal["text"]] = "text"
    text: str
    style: Literal["plain", "dim", "warning", "error"] = "plain"


class MarkdownBlock(Tagged, frozen=True, tag="markdown"):
    type: ClassVar[Literal["markdown"]] = "markdown"
    text: str


class DiffBlock(Tagged, frozen=True, tag="diff"):
    """A change to one text file, as both full texts, so that a front-end can choose the form of the diff.

    ``old`` is None for a new file, ``new`` is None for a deleted one. Line ends are as in the file.
    """

    type: ClassVar[Literal["diff"]] = "diff"
    path: str
    old: str | None
    new: str | None
    note: str = ""
    """For example "overwrites", "outside the workspace", "binary"."""
    first_line: int = 1
    """Line number where both texts begin; above 1 for a part of a long file."""


class TerminalBlock(Tagged, frozen=True, tag="terminal"):
    """A command and its output (raw bytes decoded, escape sequences still inside)."""

    type: ClassVar[Literal["terminal"]] = "terminal"
    command: str
    output: str
    exit_status: int | None = None
    """None while the command runs, or if it was killed."""
    cwd: str = ""
    duration: float | None = None
    """Seconds."""
    truncated: bool = False


class FileEntry(Struct, frozen=True):
    path: str
    line: int | None = None
    text: str = ""
    is_dir: bool = False


class FileListBlock(Tagged, frozen=True, tag="files"):
    """Files, or places in files (``line`` and ``text`` set) such as search matches."""

    type: ClassVar[Literal["files"]] = "files"
    entries: tuple[FileEntry, ...]
    total: int = 0
    """Number of all entries, listed or not."""


TodoStatus = Literal["pending", "in_progress", "completed"]


class Todo(Struct, frozen=True):
    text: str
    status: TodoStatus = "pending"


class TodoBlock(Tagged, frozen=True, tag="todos"):
    type: ClassVar[Literal["todos"]] = "todos"
    todos: tuple[Todo, ...]


class TableBlock(Tagged, frozen=True, tag="table"):
    type: ClassVar[Literal["table"]] = "table"
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    figures: bool = False
    """All columns but the first hold figures and are aligned to the right."""


class ImageBlock(Tagged, frozen=True, tag="image"):
    """An image as a placeholder: front-ends show name, type and size."""

    type: ClassVar[Literal["image"]] = "image"
    name: str
    media_type: str
    byte_size: int


DisplayBlock = (
    TextBlock | MarkdownBlock | DiffBlock | TerminalBlock | FileListBlock | TodoBlock | TableBlock | ImageBlock
)
