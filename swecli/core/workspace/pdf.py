"""Pages of PDF files: their text, and files with just these pages for models that read PDF."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from swecli.core.workspace.command_output import capture
from swecli.lazy_pattern import lazy_pattern

MAGIC: Final = b"%PDF-"
LARGEST: Final = 50_000_000
"""Bytes of the largest file that is read."""
MOST_PAGES: Final = 100
"""Pages of one result, and of all files of a request: what Anthropic accepts for windows of 200,000 tokens
(https://platform.claude.com/docs/en/build-with-claude/pdf-support)."""
USUAL_PAGES: Final = 20
"""Pages of a result if none are chosen."""
FILE_CHARACTERS: Final = 10_000_000
"""Base64 characters of one file that is sent; a larger one is sent as text. Providers accept 20 to 50 MB a request."""
_CHARACTERS: Final = 8_000_000
_OUTPUT: Final = 32_000_000
_SECONDS: Final = 20.0
_GRACE: Final = 20.0
"""Seconds for what the worker does beside the text, without looking at the clock: parsing, and writing a file."""
_SAMPLE: Final = 4
"""Pages that are read to estimate the size of all."""
_RANGE = lazy_pattern(r"(\d{1,6})(?:\s*-\s*(\d{0,6}))?")
_BOOT = "import sys;sys.path[:0]={paths!r};from swecli.core.workspace.pdf_worker import main;sys.exit(main())"

Ranges = tuple[tuple[int, int], ...]
"""First and last pages, from 1; a last page of 0 is that of the file."""


class PdfError(Exception):
    """The file can't be read; a clause with the reason."""


class Pdf(Struct, frozen=True):
    """Pages ``numbers`` of a file that has ``total``; ``left`` were chosen, too, but are too many. ``texts`` has those
    of the first pages within the limits of characters and time. ``file`` is base64 text of a file with these pages,
    empty if there is none or none was wanted."""

    total: int
    numbers: tuple[int, ...]
    texts: Mapping[int, str]
    file: str = ""
    left: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The texts, each page under its number."""
        return "\n\n".join(f"--- page {number} ---\n{text}".rstrip() for number, text in self.texts.items())

    @property
    def without_text(self) -> tuple[int, ...]:
        """Pages that were read and have no text: scanned or empty ones."""
        return tuple(number for number, text in self.texts.items() if not text)


def page_ranges(chosen: str) -> Ranges:
    """The pages of a choice such as ``3``, ``1-5,8`` or ``90-``; raises ``ValueError`` for anything else."""
    ranges: list[tuple[int, int]] = []
    for word in chosen.split(","):
        match = _RANGE.fullmatch(word.strip())
        if match is None:
            raise ValueError(f"pages are chosen like 3, 1-5,8 or 90-, not {chosen[:40]!r}")
        first = int(match[1])
        last = first if match[2] is None else int(match[2] or 0)
        if first < 1 or 0 < last < first:
            raise ValueError(f"{word.strip()} is no range of pages")
        ranges.append((first, last))
    return tuple(ranges)


def as_ranges(numbers: Sequence[int]) -> str:
    """Page numbers in the form of ``page_ranges``."""
    words: list[str] = []
    first = 0
    for at, number in enumerate(numbers):
        if at + 1 < len(numbers) and numbers[at + 1] == number + 1:
            continue
        words.append(str(number) if first == at else f"{numbers[first]}-{number}")
        first = at + 1
    return ",".join(words)


async def read_pdf(
    raw: bytes,
    ranges: Ranges,
    *,
    environment: Mapping[str, str],
    as_file: bool = False,
    characters: int = _CHARACTERS,
    sample: bool = False,
) -> Pdf:
    """The chosen pages, at most ``MOST_PAGES``. ``as_file`` adds a file with them, unless it would be too large;
    ``characters`` limits the text, of which there is at least one page; ``sample`` reads the text of a few pages only.

    Raises:
        PdfError: the file is damaged, encrypted or without these pages, or reading it takes too long.
    """
    request = {
        "pages": ranges,
        "most": MOST_PAGES,
        "as_file": as_file,
        "characters": min(characters, _CHARACTERS),
        "sample": _SAMPLE if sample else 0,
        "seconds": _SECONDS,
    }
    result = await _worker(json.dumps(request).encode() + b"\n" + raw, environment)
    file: str = result["file"]
    if as_file and result["whole"]:
        file = base64.b64encode(raw).decode("ascii")
    texts = {int(number): str(text) for number, text in result["texts"].items()}
    fits = len(file) <= FILE_CHARACTERS
    return Pdf(result["total"], tuple(result["numbers"]), texts, file if fits else "", tuple(result["left"]))


async def _worker(data: bytes, environment: Mapping[str, str]) -> Mapping[str, Any]:
    if find_spec("pypdf") is None:
        raise PdfError("reading PDF needs the Python package pypdf, which is not installed")
    argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT.format(paths=_module_folders())]
    done = await capture(
        argv,
        cwd=Path("/") if sys.platform != "win32" else Path.cwd(),
        environment=environment,
        timeout=_SECONDS + _GRACE,
        limit=_OUTPUT,
        stdin=data,
    )
    if done.timed_out:
        raise PdfError("reading it takes too long")
    if done.overflowed:
        raise PdfError("it is too large")
    if done.status == 2:  # the last line: warnings of the parser may come before it
        raise PdfError(done.errors.decode("utf-8", "replace").strip().rpartition("\n")[2][-200:])
    if done.status != 0:
        raise PdfError("it is damaged")
    return json.loads(done.output)


def _module_folders() -> list[str]:
    specs = (find_spec("swecli"), find_spec("pypdf"))
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    return list(dict.fromkeys(str(Path(origin).resolve().parent.parent) for origin in origins))
