"""Worker process that reads a PDF file: parsing one may take any time and memory, and only a process can be killed.

Standard input: a JSON object on one line, then the file. Standard output: a JSON object. Exit status 2 with a message
on stderr: the file can't be read, for that reason; any other failure means that it is damaged.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_MEMORY = 2_000_000_000
"""Bytes of address space."""
_PAGE_CHARACTERS = 100_000
"""Characters of one page that are kept."""


def main() -> int:
    """Serve one request; returns the exit status."""
    from pypdf import PdfReader

    header, _, raw = sys.stdin.buffer.read().partition(b"\n")
    request: dict[str, Any] = json.loads(header)
    _limit_memory()
    reader = PdfReader(io.BytesIO(raw))
    if reader.is_encrypted and not reader.decrypt(""):
        sys.stderr.write("it is encrypted with a password")
        return 2
    total = len(reader.pages)
    numbers = _chosen(request["pages"], total)
    if not numbers:
        sys.stderr.write(f"it has only {total:,} page{'' if total == 1 else 's'}" if total else "it has no pages")
        return 2
    left, numbers = numbers[request["most"] :], numbers[: request["most"]]
    texts = _texts(reader, numbers, request)
    file = ""
    if request["as_file"] and (reader.is_encrypted or len(numbers) < total):
        file = _with_pages(reader, numbers)
    whole = not reader.is_encrypted and len(numbers) == total
    result = {"total": total, "numbers": numbers, "left": left, "texts": texts, "file": file, "whole": whole}
    sys.stdout.write(json.dumps(result))
    sys.stdout.flush()
    return 0


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or hard > _MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))


def _chosen(ranges: Sequence[Sequence[int]], total: int) -> list[int]:
    """Page numbers from 1, in order, without duplicates. An end of 0 is the last page."""
    wanted = (number for first, last in ranges for number in range(first, min(last or total, total) + 1))
    return sorted(set(wanted))


def _texts(reader: PdfReader, numbers: Sequence[int], request: dict[str, Any]) -> dict[int, str]:
    """Texts by page number, of whole pages within the limits of characters and time; at least one."""
    deadline = time.monotonic() + float(request["seconds"])
    sample: int = request["sample"]
    read = numbers[:: -(-len(numbers) // sample)] if sample else numbers
    texts: dict[int, str] = {}
    used = 0
    for number in read:
        if texts and time.monotonic() > deadline:
            break
        text = _text(reader.pages[number - 1])
        used += len(text)
        if texts and used > request["characters"]:
            break
        texts[number] = text
    return texts


def _text(page: PageObject) -> str:
    text = page.extract_text()[:_PAGE_CHARACTERS]
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def _with_pages(reader: PdfReader, numbers: Sequence[int]) -> str:
    """A file with these pages only, as base64 text."""
    from pypdf import PdfWriter

    writer = PdfWriter()
    for number in numbers:
        writer.add_page(reader.pages[number - 1])
    writer.compress_identical_objects()
    out = io.BytesIO()
    writer.write(out)
    return base64.b64encode(out.getvalue()).decode("ascii")
