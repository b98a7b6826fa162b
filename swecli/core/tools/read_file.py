"""Reading a file: numbered lines of a text, an image as an image, anything else by its name."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import ImageBlock, TextBlock
from swecli.core.protocol.messages import ImagePart
from swecli.core.tools.base import Params, SeenFile, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.file_types import binary_kind, image_type, is_binary
from swecli.core.tools.files import explained, plural, readable_size, reading
from swecli.core.tools.line_window import read_window
from swecli.core.workspace.regular_file import open_regular, read_all
from swecli.core.workspace.text_file import TextFile, decode

MAX_LINES = 2_000
MAX_CHARACTERS = 28_000
"""About 8,000 tokens of code."""
MAX_COLUMNS = 2_000
MAX_IMAGE = 5_000_000
_WHOLE = 10_000_000
"""Bytes of a file that is read whole, so that its encoding is known as an edit will see it."""
_SECONDS = 10.0


class ReadFileParams(Params):
    path: str
    offset: int = Field(1, ge=1, description="First line, from 1")
    limit: int = Field(MAX_LINES, ge=1, description="Lines, default 2000")


@dataclass(frozen=True, slots=True)
class _Page:
    """Numbered lines; ``shown`` of them, ``total`` in the file where that is known."""

    text: str
    shown: int
    total: int | None
    notes: tuple[str, ...]


class ReadFile(Tool[ReadFileParams]):
    """Reads one file."""

    name = "read_file"
    verb = "Read"
    params = ReadFileParams

    def effects(self, params: ReadFileParams, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.resolve(params.path)),))

    def title(self, params: ReadFileParams, ctx: ToolContext) -> str:
        name = ctx.display(ctx.resolve(params.path))
        if params.offset == 1 and params.limit == MAX_LINES:
            return name
        last = "" if params.limit == MAX_LINES else params.offset + params.limit - 1
        return f"{name}:{params.offset}-{last}"

    async def run(self, params: ReadFileParams, ctx: ToolContext) -> ToolOutcome:
        path = ctx.resolve(params.path)

        def read(stop: Callable[[], bool]) -> ToolOutcome:
            try:
                return _read(path, params, stop)
            except OSError as error:
                raise explained(error, path, ctx) from error

        return await reading(read)


def _read(path: Path, params: ReadFileParams, stop: Callable[[], bool]) -> ToolOutcome:
    with open_regular(path) as (descriptor, status):
        head = os.read(descriptor, 8_192)
        os.lseek(descriptor, 0, os.SEEK_SET)
        media = image_type(head)
        if media is not None:
            return _image(path, descriptor, status.st_size, media)
        if is_binary(head):
            kind, size = binary_kind(head), readable_size(status.st_size)
            hint = " Try pdftotext with run_command." if head.startswith(b"%PDF-") else ""
            text = f"{path.name} is a binary file ({size}), it looks like {kind}. It was not read.{hint}"
            return ToolOutcome(text, (TextBlock(text, "dim"),), f"binary, {size}")
        seen: tuple[SeenFile, ...] = ()
        if not head:
            return ToolOutcome("(the file is empty)", (), "empty", seen=(_seen(path, b"", 1, 1),))
        if status.st_size <= _WHOLE:
            raw = read_all(descriptor, status.st_size)
            page = _page_of_text(decode(raw), params)
            seen = (_seen(path, raw, params.offset, params.offset + page.shown - 1),)
        else:
            page = _page_of_large(descriptor, params, stop)
    notes = "".join(f"\n[{note}]" for note in page.notes)
    return ToolOutcome(page.text + notes, (TextBlock(page.text),), plural(page.shown, "line"), seen=seen)


def _seen(path: Path, raw: bytes, first: int, last: int) -> SeenFile:
    return SeenFile(str(path), sha256(raw).hexdigest(), first, last)


def _page_of_text(file: TextFile, params: ReadFileParams) -> _Page:
    lines = file.text.split("\n")
    if file.final_newline:
        lines.pop()
    total = len(lines)
    if params.offset > total:
        raise ToolError(f"The file has {plural(total, 'line')}; offset {params.offset} is past its end.")
    chosen = lines[params.offset - 1 : params.offset - 1 + params.limit]
    text, shown = _numbered(((line.removesuffix("\r"), len(line)) for line in chosen), params.offset)
    return _Page(text, shown, total, (*_more(params.offset, shown, total), *_form(file)))


def _page_of_large(descriptor: int, params: ReadFileParams, stop: Callable[[], bool]) -> _Page:
    window = read_window(descriptor, params.offset, params.limit, budget=MAX_CHARACTERS, seconds=_SECONDS, stop=stop)
    if not window.lines:
        if window.timed_out:
            raise ToolError(
                f"Line {params.offset} lies too far inside this very large file to be found in {_SECONDS:.0f} s "
                f"(line {window.seen:,} was reached). Use run_command with tail, sed or split."
            )
        raise ToolError(f"The file has {plural(window.seen, 'line')}; offset {params.offset} is past its end.")
    decoded = ((line.data.decode("utf-8", "replace").removesuffix("\r"), line.size) for line in window.lines)
    text, shown = _numbered(decoded, params.offset)
    return _Page(text, shown, window.total, _more(params.offset, shown, window.total))


def _numbered(lines: Iterable[tuple[str, int]], first: int) -> tuple[str, int]:
    """Lines with their numbers, as many as the budget takes (one at least), and how many that is."""
    shown: list[str] = []
    used = 0
    for line, size in lines:
        if len(line) > MAX_COLUMNS:
            line = f"{line[:MAX_COLUMNS]} [… line cut: {max(size, len(line)) - MAX_COLUMNS:,} more]"
        entry = f"{first + len(shown):>5}\t{line}"
        used += len(entry) + 1
        if shown and used > MAX_CHARACTERS:
            break
        shown.append(entry)
    return "\n".join(shown), len(shown)


def _more(first: int, shown: int, total: int | None) -> tuple[str, ...]:
    last = first + shown - 1
    if total is not None and last >= total:
        return ()
    of = f"of {total:,}" if total is not None else "of a very large file"
    return (f"lines {first}-{last} {of}; go on with offset={last + 1}",)


def _form(file: TextFile) -> tuple[str, ...]:
    """What an edit keeps and the text does not show."""
    facts = [] if file.label == "UTF-8" else [file.label]
    if file.line_end in ("crlf", "mixed"):
        facts.append("CRLF line ends" if file.line_end == "crlf" else "mixed LF and CRLF line ends")
    if not file.final_newline:
        facts.append("no newline at the end")
    return (", ".join(facts),) if facts else ()


def _image(path: Path, descriptor: int, size: int, media: str) -> ToolOutcome:
    block = ImageBlock(path.name, media, size)
    if size > MAX_IMAGE:
        text = f"{path.name} is an image ({media}, {readable_size(size)}), too large to show: the limit is 5 MB."
        return ToolOutcome(text, (block,), f"image, {readable_size(size)}")
    data = base64.b64encode(read_all(descriptor, size)).decode("ascii")
    text = f"{path.name}: {media}, {readable_size(size)}"
    return ToolOutcome(text, (block,), f"image, {readable_size(size)}", images=(ImagePart(media, data, path.name),))
