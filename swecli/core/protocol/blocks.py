"""Display blocks: what a tool shows a person, as data.

A front-end has one renderer per block type. Every text in a block may come from outside (a model, a file,
a program) and is unsanitised; the front-end sanitises it at its door.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from swecli.core.protocol.value import value


@value
class TextBlock:
    text: str
    style: Literal["plain", "dim", "warning", "error"] = "plain"
    type: Literal["text"] = field(default="text", kw_only=True)


@value
class MarkdownBlock:
    text: str
    type: Literal["markdown"] = field(default="markdown", kw_only=True)


@value
class DiffBlock:
    """A change to one text file: both full texts, so that a front-end can choose the form of the diff.

    ``old`` is None for a new file, ``new`` is None for a deleted one. Line ends are as in the file.
    """

    path: str
    old: str | None
    new: str | None
    note: str = ""
    """For example "overwrites", "outside the workspace", "binary"."""
    first_line: int = 1
    """Number of the first line of both texts: above 1 where only a part of a long file is given."""
    type: Literal["diff"] = field(default="diff", kw_only=True)


@value
class TerminalBlock:
    """A command and its output (raw bytes decoded, escape sequences still inside)."""

    command: str
    output: str
    exit_status: int | None = None
    """None while it runs, or when it was killed before it ended by itself."""
    cwd: str = ""
    duration: float | None = None
    """Seconds."""
    truncated: bool = False
    type: Literal["terminal"] = field(default="terminal", kw_only=True)


@value
class FileEntry:
    path: str
    line: int | None = None
    text: str = ""
    is_dir: bool = False


@value
class FileListBlock:
    """Files, or places in files (``line`` and ``text`` set) such as search matches."""

    entries: tuple[FileEntry, ...]
    total: int = 0
    """How many there are in all, which may be more than are listed."""
    type: Literal["files"] = field(default="files", kw_only=True)


TodoStatus = Literal["pending", "in_progress", "completed"]


@value
class Todo:
    text: str
    status: TodoStatus = "pending"


@value
class TodoBlock:
    todos: tuple[Todo, ...]
    type: Literal["todos"] = field(default="todos", kw_only=True)


@value
class TableBlock:
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    type: Literal["table"] = field(default="table", kw_only=True)


@value
class ImageBlock:
    """An image as a placeholder: front-ends show name, type and size."""

    name: str
    media_type: str
    byte_size: int
    type: Literal["image"] = field(default="image", kw_only=True)


DisplayBlock = (
    TextBlock | MarkdownBlock | DiffBlock | TerminalBlock | FileListBlock | TodoBlock | TableBlock | ImageBlock
)
