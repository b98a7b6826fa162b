"""Patches: parsing, locating in a file, and applying byte for byte."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import Literal

from msgspec import Struct

from swecli.core.workspace.edit import EditError, explain_miss, splice
from swecli.core.workspace.text_file import TextFile
from swecli.lazy_pattern import lazy_pattern

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_HEAD = lazy_pattern(r"\*\*\* (Add|Update|Delete) File: *(.+?) *")
_MOVE = lazy_pattern(r"\*\*\* Move to: *(.+?) *")
_HEREDOC = lazy_pattern(r"(?:apply_patch\s+)?<<\s*(['\"]?)(\w+)\1\s*\n(.*)\n\2\s*", re.DOTALL)
_FENCE = lazy_pattern(r"```\w*\n(.*)\n```\s*", re.DOTALL)


class PatchError(Exception):
    """The text is not a valid patch, or it does not fit; the message says where and why. Nothing was changed."""


Sign = Literal[" ", "-", "+"]


class Chunk(Struct, frozen=True):
    """One changed place. ``headers`` are lines above that lead to it; ``at_end``: it is the end of the file."""

    headers: tuple[str, ...]
    lines: tuple[tuple[Sign, str], ...]
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]


class FilePatch(Struct, frozen=True):
    """The change of one file. ``text`` is the content of a new one."""

    action: Literal["add", "update", "delete"]
    path: str
    move_to: str | None = None
    chunks: tuple[Chunk, ...] = ()
    text: str = ""


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch, in order. A patch inside a here-document or a code fence is unpacked.

    Raises:
        PatchError: the patch or a part of it is malformed.
    """
    lines = list(enumerate(_unpacked(text).split("\n"), 1))
    while lines and not lines[0][1].strip():
        lines.pop(0)
    while lines and not lines[-1][1].strip():
        lines.pop()
    if not lines or lines[0][1].strip() != BEGIN:
        raise PatchError(f"The first line must be {BEGIN!r}.")
    if lines[-1][1].strip() != END:
        raise PatchError(f"The last line must be {END!r}: the patch may have been cut off.")
    patches = tuple(_files(lines[1:-1]))
    if not patches:
        raise PatchError("The patch names no file.")
    return patches


def _unpacked(text: str) -> str:
    text = text.replace("\r\n", "\n").strip("\n")
    for form in (_FENCE, _HEREDOC):
        match = form.fullmatch(text.strip())
        if match:
            text = match.group(match.lastindex or 1)
    return text


Line = tuple[int, str]


def _files(lines: list[Line]) -> Iterator[FilePatch]:
    at = 0
    while at < len(lines):
        number, line = lines[at]
        if not line.strip():
            at += 1
            continue
        head = _HEAD.fullmatch(line.strip())
        if head is None:
            raise PatchError(f"Line {number}: expected '*** Add File: ', '*** Update File: ' or '*** Delete File: '.")
        end = next((one for one in range(at + 1, len(lines)) if _HEAD.fullmatch(lines[one][1])), len(lines))
        body, path = lines[at + 1 : end], head.group(2)
        match head.group(1):
            case "Add":
                yield FilePatch("add", path, text=_added(body))
            case "Delete":
                if any(line.strip() for _, line in body):
                    raise PatchError(f"Line {body[0][0]}: nothing may follow '*** Delete File: {path}'.")
                yield FilePatch("delete", path)
            case _:
                yield _updated(number, path, body)
        at = end


def _added(body: list[Line]) -> str:
    while body and not body[-1][1]:
        body.pop()
    for number, line in body:
        if not line.startswith("+"):
            raise PatchError(f"Line {number}: every line of a new file starts with '+'.")
    return "".join(f"{line[1:]}\n" for _, line in body)


def _updated(number: int, path: str, body: list[Line]) -> FilePatch:
    move_to = None
    if body and (move := _MOVE.fullmatch(body[0][1].strip())):
        move_to, body = move.group(1), body[1:]
    chunks = tuple(_chunks(body))
    if not chunks and move_to is None:
        raise PatchError(f"Line {number}: the update of {path} changes nothing.")
    return FilePatch("update", path, move_to, chunks)


def _chunks(body: list[Line]) -> Iterator[Chunk]:
    headers: list[str] = []
    lines: list[tuple[Sign, str]] = []
    for number, line in body:
        if line.startswith("@@"):
            if lines:
                yield _chunk(headers, lines)
                headers, lines = [], []
            name = line[2:].removeprefix(" ").removesuffix(" @@")
            if name.strip():
                headers.append(name)
        elif line.strip() == END_OF_FILE:
            yield _chunk(headers, lines, at_end=True)
            headers, lines = [], []
        elif not line:
            lines.append((" ", ""))
        elif line[0] == " " or line[0] == "-" or line[0] == "+":
            sign: Sign = " " if line[0] == " " else "-" if line[0] == "-" else "+"
            lines.append((sign, line[1:]))
        else:
            raise PatchError(f"Line {number}: a line of a change starts with ' ', '-' or '+', or is '@@'.")
    if any(sign != " " or text for sign, text in lines):
        yield _chunk(headers, lines)


def _chunk(headers: list[str], lines: list[tuple[Sign, str]], *, at_end: bool = False) -> Chunk:
    return Chunk(tuple(headers), tuple(lines), at_end)


_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("‘’‚‛", "'"),
        **dict.fromkeys("“”„‟", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)


def _plain(line: str) -> str:
    return unicodedata.normalize("NFC", line).translate(_PLAIN).strip()


_FORMS: tuple[Callable[[str], str], ...] = (lambda line: line, str.rstrip, str.strip, _plain)
"""Forms in which lines are compared, strictest first."""

Piece = tuple[int, int, str]


def patched(file: TextFile, chunks: Sequence[Chunk]) -> bytes:
    """The file's bytes after the changes.

    Raises:
        PatchError: a place is not found, or the encoding can't represent a new line. Nothing was changed.
    """
    lines = _Lines(file)
    pieces: list[Piece] = []
    cursor = 0
    for number, chunk in enumerate(chunks, 1):
        for header in chunk.headers:
            found = lines.find([header], cursor)
            if found is None:
                raise PatchError(f"Change {number}: the line after @@ was not found: {header[:200]!r}.")
            cursor = found + 1
        start, taken = _place(lines, chunk, cursor, number)
        pieces += lines.pieces(chunk, start, taken)
        cursor = start + taken
    try:
        return splice(file, pieces)
    except EditError as error:
        raise PatchError(str(error).replace("new_string", "A new line")) from error


def _place(lines: _Lines, chunk: Chunk, cursor: int, number: int) -> tuple[int, int]:
    """The line where the chunk begins, and how many lines it covers."""
    old = chunk.old
    if not old:
        return (cursor if chunk.headers and not chunk.at_end else len(lines.texts)), 0
    for wanted in (old, old[:-1] if not old[-1] else []):
        if not wanted:
            continue
        if chunk.at_end:
            at_end = lines.find(wanted, max(cursor, len(lines.texts) - len(wanted)))
            if at_end is not None:
                return at_end, len(wanted)
        found = lines.find(wanted, cursor)
        if found is not None:
            return found, len(wanted)
    if lines.find(old, 0) is not None:
        raise PatchError(
            f"Change {number}: its place is above the one before it, or above its @@ line. Put the changes of a file "
            "in the order of its lines."
        )
    why = (
        explain_miss("\n".join(lines.texts), "\n".join(old))
        .replace("old_string", "the context")
        .replace(", in new_string too", "")
    )
    raise PatchError(f"Change {number}: {why}")


class _Lines:
    """The lines of a file: their texts without ends, their ends, and their offsets in characters."""

    def __init__(self, file: TextFile) -> None:
        whole = list(StringIO(file.text, newline="\n"))
        self.texts = [line.removesuffix("\n").removesuffix("\r") for line in whole]
        self.ends = [line[len(text) :] for line, text in zip(whole, self.texts, strict=True)]
        self.starts = [0]
        for line in whole:
            self.starts.append(self.starts[-1] + len(line))
        self._usual = "\r\n" if file.line_end == "crlf" else "\n"
        self._forms: dict[int, list[str]] = {0: self.texts}

    def find(self, wanted: Sequence[str], start: int) -> int | None:
        for index, form in enumerate(_FORMS):
            have = self._forms.get(index)
            if have is None:
                have = self._forms[index] = [form(line) for line in self.texts]
            asked = [form(line) for line in wanted]
            for at in range(start, len(have) - len(asked) + 1):
                if have[at] == asked[0] and have[at : at + len(asked)] == asked:
                    return at
        return None

    def pieces(self, chunk: Chunk, start: int, taken: int) -> list[Piece]:
        """Replacements as characters ``start`` to ``end`` and the new text."""
        made: list[Piece] = []
        at, gone, added = start, start, list[str]()
        for sign, text in (*chunk.lines, (" ", None)):
            if sign == "+" and text is not None:
                added.append(text)
            elif sign == "-":
                at += 1
            else:
                if added or at > gone:
                    made.append(self._piece(gone, at, added))
                    added = []
                at = min(at + 1, start + taken)
                gone = at
        return made

    def _piece(self, first: int, end: int, added: Sequence[str]) -> Piece:
        """Replace lines ``first`` up to ``end`` by ``added``. A missing newline at the end of the file stays
        missing."""
        near = first if first < len(self.ends) else first - 1
        line_end = (self.ends[near] if 0 <= near < len(self.ends) and self.ends[near] else self._before(near)) or "\n"
        text = "".join(f"{line}{line_end}" for line in added)
        unended = bool(self.ends) and not self.ends[-1] and end == len(self.ends)
        if unended and first == len(self.ends):
            text = line_end + text.removesuffix(line_end) if added else ""
        elif unended:
            text = text.removesuffix(line_end)
        return self.starts[first], self.starts[end], text

    def _before(self, near: int) -> str:
        return next((end for end in reversed(self.ends[: max(near, 0)]) if end), self._usual)
