"""Display blocks as plain lines of text."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileEntry,
    FileListBlock,
    ImageBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    TodoBlock,
)

_TODO = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


def block_lines(block: DisplayBlock) -> list[str]:
    """The block's lines, without line ends. Text from outside is unchanged."""
    return _RENDERERS[type(block)](block)


def diff_lines(block: DiffBlock) -> list[str]:
    """A unified diff with three lines of context. Marks a missing newline at the end of a file."""
    before, after = (block.old or "").splitlines(keepends=True), (block.new or "").splitlines(keepends=True)
    from_name = "/dev/null" if block.old is None else block.path
    to_name = "/dev/null" if block.new is None else block.path
    lines: list[str] = []
    for line in difflib.unified_diff(before, after, from_name, to_name, lineterm="\n"):
        lines.append(line.removesuffix("\n").removesuffix("\r"))
        if not line.endswith("\n"):
            lines.append("\\ No newline at end of file")
    if not lines:
        lines = [f"{block.path}: no change"] if block.old is not None else [f"{block.path}: empty file"]
    return [*lines, *([f"({block.note})"] if block.note else [])]


def _terminal(block: TerminalBlock) -> list[str]:
    lines = [f"$ {block.command}", *block.output.splitlines()]
    if block.truncated:
        lines.append("(output shortened)")
    if block.exit_status is not None:
        lines.append(f"exit {block.exit_status}")
    return lines


def _files(block: FileListBlock) -> list[str]:
    lines = [_entry(entry) for entry in block.entries]
    more = block.total - len(block.entries)
    return [*lines, f"and {more} more"] if more > 0 else lines


def _entry(entry: FileEntry) -> str:
    name = entry.path + ("/" if entry.is_dir and not entry.path.endswith("/") else "")
    return name if entry.line is None else f"{name}:{entry.line}: {entry.text}"


def _table(block: TableBlock) -> list[str]:
    rows = [block.headers, *block.rows]
    widths = [max(len(row[at]) if at < len(row) else 0 for row in rows) for at in range(len(block.headers))]
    lines = [_row(row, widths, block.figures) for row in rows]
    return [*([block.title] if block.title else []), *lines]


def _row(row: Iterable[str], widths: list[int], figures: bool) -> str:
    padded = (
        cell.rjust(width) if figures and column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=False))
    )
    return "  ".join(padded).rstrip()


def _text(block: TextBlock | MarkdownBlock) -> list[str]:
    return block.text.splitlines()


def _todos(block: TodoBlock) -> list[str]:
    return [f"{_TODO[todo.status]} {todo.text}" for todo in block.todos]


def _image(block: ImageBlock) -> list[str]:
    return [f"image {block.name} ({block.media_type}, {block.byte_size:,} bytes)"]


_RENDERERS: Mapping[type, Callable[[Any], list[str]]] = {
    TextBlock: _text,
    MarkdownBlock: _text,
    DiffBlock: diff_lines,
    TerminalBlock: _terminal,
    FileListBlock: _files,
    TodoBlock: _todos,
    TableBlock: _table,
    ImageBlock: _image,
}


def shortened(text: str, longest: int) -> str:
    """A long text without its middle, replaced by a remark."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
