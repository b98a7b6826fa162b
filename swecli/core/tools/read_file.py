"""Reading a file: numbered lines of a text, images and pages of PDF files as such, the name of anything else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from swecli.core.images import image_type, prepared, too_large
from swecli.core.permissions.types import Effects
from swecli.core.ports import EditorFiles
from swecli.core.protocol.blocks import ImageBlock, TextBlock
from swecli.core.protocol.messages import DocumentPart, ImagePart
from swecli.core.tools.base import (
    Params,
    SeenFile,
    Tool,
    ToolContext,
    ToolError,
    ToolOutcome,
    explained,
    readable_size,
    reading,
)
from swecli.core.tools.editor import as_in_editor
from swecli.core.workspace.pdf import (
    LARGEST,
    MAGIC,
    MOST_PAGES,
    USUAL_PAGES,
    Pdf,
    PdfError,
    as_ranges,
    page_ranges,
    read_pdf,
)
from swecli.core.workspace.text_file import TextFile, decode, open_regular, read_all
from swecli.figures import plural

_PIECE = 1 << 20
_KEPT = 16_384
"""Bytes kept of one line."""
_COUNT_LIMIT = 64_000_000
"""Bytes after the window that are read only to count lines."""


class RawLine(Struct, frozen=True):
    """The beginning of a line without its line end, and the whole line's length in bytes."""

    data: bytes
    size: int


class Window(Struct, frozen=True):
    """Lines of a file. ``total`` is the file's number of lines, None if not counted to the end; ``seen`` is a lower
    bound of it."""

    lines: tuple[RawLine, ...]
    total: int | None
    seen: int
    timed_out: bool = False


class _Stopped(Exception):
    """The time limit passed, or the caller was cancelled."""


def read_window(
    descriptor: int, first: int, count: int, *, budget: int, seconds: float, stop: Callable[[], bool] = lambda: False
) -> Window:
    """Up to ``count`` lines from line ``first`` (from 1), about ``budget`` bytes, within ``seconds`` and until ``stop``
    returns True.

    A line ends at LF. Memory does not depend on the size of the file or of a line.
    """
    reader = _LineReader(descriptor, time.monotonic() + seconds, stop)
    lines: list[RawLine] = []
    try:
        reader.skip(first - 1)
        used = 0
        while len(lines) < count and used < budget and (line := reader.next()) is not None:
            lines.append(line)
            used += len(line.data)
        complete = reader.skip_rest()
    except _Stopped:
        return Window(tuple(lines), None, reader.lines, timed_out=True)
    return Window(tuple(lines), reader.lines if complete else None, reader.lines)


class _LineReader:
    """Lines of an open file, with one chunk in memory. ``lines`` counts the lines already passed."""

    def __init__(self, descriptor: int, deadline: float, stop: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._deadline = deadline
        self._stop = stop
        self._piece = b""
        self._at = 0
        self.lines = 0

    def _fill(self) -> bool:
        """Read the next chunk if this one is used up; False at the end of the file."""
        if self._at >= len(self._piece):
            if time.monotonic() > self._deadline or self._stop():
                raise _Stopped
            self._piece, self._at = os.read(self._descriptor, _PIECE), 0
        return bool(self._piece)

    def skip(self, count: int) -> None:
        """Skip ``count`` lines, or to the end of the file."""
        unfinished = False
        while count > 0 and self._fill():
            newlines = self._piece.count(b"\n", self._at)
            if newlines < count:
                unfinished = not self._piece.endswith(b"\n")
                self._at = len(self._piece)
                self.lines += newlines
                count -= newlines
                continue
            for _ in range(count):
                self._at = self._piece.index(b"\n", self._at) + 1
            self.lines += count
            return
        self.lines += unfinished

    def next(self) -> RawLine | None:
        if not self._fill():
            return None
        content, size = bytearray(), 0
        while self._fill():
            end = self._piece.find(b"\n", self._at)
            edge = end if end >= 0 else len(self._piece)
            content += self._piece[self._at : min(edge, self._at + _KEPT - len(content))]
            size += edge - self._at
            self._at = edge
            if end >= 0:
                self._at += 1
                break
        self.lines += 1
        return RawLine(bytes(content), size)

    def skip_rest(self) -> bool:
        """Count the remaining lines; False if they exceed ``_COUNT_LIMIT`` bytes."""
        passed, unfinished = 0, False
        while self._fill():
            passed += len(self._piece) - self._at
            if passed > _COUNT_LIMIT:
                return False
            self.lines += self._piece.count(b"\n", self._at)
            unfinished = not self._piece.endswith(b"\n")
            self._at = len(self._piece)
        self.lines += unfinished
        return True


_KINDS = (
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (also .docx, .xlsx, .jar, .whl)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "a Java class or universal Mach-O file"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"wOF2", "a web font"),
)


def binary_kind(head: bytes) -> str:
    if head[4:8] == b"ftyp":
        return "MP4 or similar media"
    if codec := _unmarked(head):
        return f"{codec} text without a byte order mark"
    return next((kind for magic, kind in _KINDS if head.startswith(magic)), "unknown binary data")


_PRINTABLE = frozenset(b"\t\n\r") | frozenset(range(32, 127))


def _unmarked(head: bytes) -> str:
    """The encoding of UTF-16 in ASCII characters without a mark; empty for anything else."""
    for codec, zeros, letters in (("UTF-16LE", head[1::2], head[::2]), ("UTF-16BE", head[::2], head[1::2])):
        if len(head) > 3 and not any(zeros) and _PRINTABLE.issuperset(letters):
            return codec
    return ""


def is_binary(head: bytes) -> bool:
    """Whether the first bytes are not text: NUL without a Unicode mark, or a document's signature."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return False
    return b"\0" in head or head.startswith(b"%PDF-")


UNSAVED = "the user's editor has unsaved changes to this file, shown here; commands see the file without them"
MAX_LINES = 2_000
MAX_CHARACTERS = 28_000
"""About 8,000 tokens of code."""
MAX_COLUMNS = 2_000
_WHOLE = 10_000_000
"""Largest file, in bytes, that is read completely, so that its encoding is detected as for an edit."""
_SECONDS = 10.0


ALL_PAGES = f"1-{MOST_PAGES}"
"""As many pages as one result may have."""


class ReadFileParams(Params):
    path: str
    offset: Annotated[int, Meta(ge=1, description="First line, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, description="Lines, default 2000")] = MAX_LINES
    pages: Annotated[str, Meta(description="Of a PDF, e.g. 3-5")] = ""


class _Page(Struct, frozen=True):
    """Numbered lines: ``shown`` of them, of ``total`` in the file if known."""

    text: str
    shown: int
    total: int | None
    notes: tuple[str, ...]


class ReadFile(Tool[ReadFileParams]):
    name = "read_file"
    verb = "Read"
    params = ReadFileParams

    def effects(self, params: ReadFileParams, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.resolve(params.path)),))

    def title(self, params: ReadFileParams, ctx: ToolContext) -> str:
        name = ctx.display(ctx.resolve(params.path))
        if params.pages:
            return name if params.pages == ALL_PAGES else f"{name}:{params.pages}"
        if params.offset == 1 and params.limit == MAX_LINES:
            return name
        last = "" if params.limit == MAX_LINES else params.offset + params.limit - 1
        return f"{name}:{params.offset}-{last}"

    async def run(self, params: ReadFileParams, ctx: ToolContext) -> ToolOutcome:
        path = ctx.resolve(params.path)

        def read(stop: Callable[[], bool]) -> ToolOutcome | None:
            """None for a PDF file."""
            try:
                if starts_as_pdf(path):
                    return None
                if params.pages:
                    raise ToolError(f"{path.name} is no PDF file; choose its lines with offset and limit.")
                return read_page(path, params, ctx.editor, stop)
            except OSError as error:
                raise explained(error, path, ctx) from error

        outcome = await reading(read)
        if outcome is not None:
            return outcome
        try:
            return await pages_of_pdf(path, params, ctx.environment, as_file=ctx.reads_documents)
        except OSError as error:
            raise explained(error, path, ctx) from error


def starts_as_pdf(path: Path) -> bool:
    """Whether the file is a PDF file, by its first bytes.

    Raises:
        OSError: it can't be read.
    """
    with open_regular(path, exact=True) as (descriptor, _):
        return os.read(descriptor, len(MAGIC)) == MAGIC


async def pages_of_pdf(
    path: Path, params: ReadFileParams, environment: Mapping[str, str], *, as_file: bool
) -> ToolOutcome:
    """The result for the model: a file with the chosen pages if it reads such files, otherwise their text.

    Raises:
        ToolError: the file can't be read, or has nothing to show.
        OSError: the file can't be opened.
    """
    if params.offset != 1 or params.limit != MAX_LINES:
        raise ToolError(f'{path.name} is a PDF file: choose pages instead of lines, such as pages="3-5".')
    try:
        ranges = page_ranges(params.pages) if params.pages else ((1, USUAL_PAGES),)
        raw = await reading(lambda _stop: whole_pdf(path))
        pdf = await read_pdf(raw, ranges, environment=environment, as_file=True) if as_file else None
        if pdf is None or not pdf.file:
            pdf = await read_pdf(raw, ranges, environment=environment, characters=MAX_CHARACTERS)
    except (PdfError, ValueError) as error:
        raise ToolError(f"{path.name} could not be read: {error}.") from error
    return _pdf_outcome(path, pdf, len(raw), chosen=bool(params.pages))


def whole_pdf(path: Path) -> bytes:
    """The bytes of a PDF file.

    Raises:
        PdfError: it is too large.
        OSError: it can't be read.
    """
    with open_regular(path, exact=True) as (descriptor, status):
        if status.st_size > LARGEST:
            raise PdfError(f"it has {readable_size(status.st_size)}, and at most {readable_size(LARGEST)} are read")
        return read_all(descriptor, status.st_size)


def _pdf_outcome(path: Path, pdf: Pdf, size: int, *, chosen: bool) -> ToolOutcome:
    shown = pdf.numbers if pdf.file else tuple(pdf.texts)
    chosen_pages = f"page{'' if len(shown) == 1 else 's'} {as_ranges(shown)} of {pdf.total:,}"
    pages = plural(pdf.total, "page") if len(shown) == pdf.total else chosen_pages
    title = f"{path.name}: PDF, {readable_size(size)}, {pages}"
    notes: list[str] = []
    rest = (*pdf.numbers[len(shown) :], *pdf.left) if chosen else range(shown[-1] + 1, pdf.total + 1)
    if rest:
        notes.append(f"continue with pages={as_ranges(rest[:USUAL_PAGES])}")
    if blank := pdf.without_text:
        notes.append(f"without text, scanned or empty: page{'' if len(blank) == 1 else 's'} {as_ranges(blank)}")
    if not pdf.file and len(blank) == len(pdf.texts):
        raise ToolError(
            f"{title}, without any text: scanned or empty. This model gets PDF files as text only; a model that "
            "reads PDF files sees such pages, or ocrmypdf with run_command adds the text."
        )
    text = "\n".join((title, *(f"[{note}]" for note in notes)))
    detail = f"PDF, {plural(len(shown), 'page')}"
    if pdf.file:
        document = DocumentPart(pdf.file, path.name, pdf.text, len(shown))
        return ToolOutcome(text, (TextBlock(text, "dim"),), detail, documents=(document,))
    return ToolOutcome(f"{text}\n\n{pdf.text}", (TextBlock(text, "dim"), TextBlock(pdf.text)), detail)


def read_page(
    path: Path, params: ReadFileParams, editor: EditorFiles | None = None, stop: Callable[[], bool] = lambda: False
) -> ToolOutcome:
    """The result for the model, including unsaved changes in the editor.

    Raises:
        ToolError: the line does not exist, or is too far into a large file.
        OSError: the file can't be read.
    """
    with open_regular(path, exact=True) as (descriptor, status):
        head = os.read(descriptor, 8_192)
        os.lseek(descriptor, 0, os.SEEK_SET)
        media = image_type(head)
        if media is not None:
            return _image(path, descriptor, status.st_size, media)
        if is_binary(head):
            kind, size = binary_kind(head), readable_size(status.st_size)
            hint = ""
            if codec := _unmarked(head):
                hint = f" Try iconv -f {codec} -t UTF-8 with run_command."
            text = f"{path.name} is a binary file ({size}, {kind}) and was not read.{hint}"
            return ToolOutcome(text, (TextBlock(text, "dim"),), f"binary, {size}")
        seen: tuple[SeenFile, ...] = ()
        if status.st_size <= _WHOLE:
            disk = read_all(descriptor, status.st_size)
            raw = as_in_editor(path, disk, editor)
            if not raw:
                return ToolOutcome("(the file is empty)", (), "empty", seen=(_seen(path, b"", 1, 1),))
            page = _page_of_text(decode(raw), params)
            if raw != disk:
                page = replace(page, notes=(*page.notes, UNSAVED))
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
                f"Line {params.offset} is too far into this very large file to reach in {_SECONDS:.0f} s (stopped "
                f"at line {window.seen:,}). Use run_command with tail, sed or split."
            )
        raise ToolError(f"The file has {plural(window.seen, 'line')}; offset {params.offset} is past its end.")
    decoded = ((line.data.decode("utf-8", "replace").removesuffix("\r"), line.size) for line in window.lines)
    text, shown = _numbered(decoded, params.offset)
    return _Page(text, shown, window.total, _more(params.offset, shown, window.total))


def _numbered(lines: Iterable[tuple[str, int]], first: int) -> tuple[str, int]:
    """Numbered lines within the budget (at least one), and their count."""
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
    return (f"lines {first}-{last} {of}; continue with offset={last + 1}",)


def _form(file: TextFile) -> tuple[str, ...]:
    """Properties that an edit preserves and the text does not show."""
    facts = [] if file.label == "UTF-8" else [file.label]
    if file.line_end in ("crlf", "mixed"):
        facts.append("CRLF line endings" if file.line_end == "crlf" else "mixed LF and CRLF line endings")
    if not file.final_newline:
        facts.append("no newline at the end")
    return (", ".join(facts),) if facts else ()


def _image(path: Path, descriptor: int, size: int, media: str) -> ToolOutcome:
    block = ImageBlock(path.name, media, size)
    picture = too_large(size) or prepared(read_all(descriptor, size), media)
    if isinstance(picture, str):
        text = f"{path.name} is an image ({media}, {readable_size(size)}), too large to show: {picture}."
        return ToolOutcome(text, (block,), f"image, {readable_size(size)}")
    text = f"{path.name}: {media}, {readable_size(size)}{f', {picture.note}' if picture.note else ''}"
    image = ImagePart(picture.media, picture.data, path.name)
    return ToolOutcome(text, (block,), f"image, {readable_size(size)}", images=(image,))
