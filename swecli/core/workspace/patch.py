"""Patches: parsing, locating in a file, and applying byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from swecli.core.workspace.edit import EditError, explain_miss, splice
from swecli.core.workspace.other_form import margin_of, plain_line
from swecli.core.workspace.text_file import TextFile
from swecli.lazy_pattern import lazy_pattern

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_HEAD = lazy_pattern(r"\*\*\* (Add|Update|Delete) File: *(.+?) *")
_MOVE = lazy_pattern(r"\*\*\* Move to: *(.+?) *")
_EXTENDED = lazy_pattern(r"diff --git |index [0-9a-f]+\.\.|(?:new|deleted) file mode |(?:old|new) mode ")
_RANGE = lazy_pattern(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)?(?: @@.*)?")
_HEREDOC = lazy_pattern(r"(?:apply_patch\s+)?<<\s*(['\"]?)(\w+)\1\s*\n(.*)\n\2\s*", re.DOTALL)
_FENCE = lazy_pattern(r"```\w*\n(.*)\n```\s*", re.DOTALL)


class PatchError(Exception):
    """The text is not a valid patch, or it does not fit; the message says where and why. Nothing was changed."""


Sign = Literal[" ", "-", "+"]
Line = tuple[int, str]
"""A line of a patch, with its number."""


class Chunk(Struct, frozen=True):
    """One changed place. ``headers`` are lines above that lead to it; ``at_end``: it is the end of the file. ``line``
    is its line number (from 1) in the old file, as a unified diff states it: it only chooses among several matches."""

    headers: tuple[str, ...]
    lines: tuple[tuple[Sign, str], ...]
    at_end: bool = False
    line: int | None = None

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
    """The files of a patch, in order. A patch inside a here-document or a code fence is unpacked; a unified diff is a
    patch, too.

    Raises:
        PatchError: the patch or a part of it is malformed.
    """
    lines = list(enumerate(_unpacked(text).split("\n"), 1))
    while lines and not lines[0][1].strip():
        lines.pop(0)
    while lines and not lines[-1][1].strip():
        lines.pop()
    patches = tuple(_unified_files(lines) if _is_unified(lines) else _files(_inside(lines)))
    if not patches:
        raise PatchError("The patch names no file.")
    return patches


def _inside(lines: list[Line]) -> list[Line]:
    """The lines between the first and the last one, which may be missing only together."""
    if lines and _HEAD.fullmatch(lines[0][1].strip()) and lines[-1][1].strip() != END:
        return lines
    if not lines or lines[0][1].strip() != BEGIN:
        raise PatchError(f"The first line must be {BEGIN!r}.")
    if lines[-1][1].strip() != END:
        raise PatchError(f"The last line must be {END!r}: the patch may have been cut off.")
    return lines[1:-1]


def _unpacked(text: str) -> str:
    text = text.replace("\r\n", "\n").strip("\n")
    for form in (_FENCE, _HEREDOC):
        match = form.fullmatch(text.strip())
        if match:
            text = match.group(match.lastindex or 1)
    return text


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
        end = next((index for index in range(at + 1, len(lines)) if _HEAD.fullmatch(lines[index][1])), len(lines))
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


def _is_unified(lines: list[Line]) -> bool:
    heads = [at for at in range(len(lines)) if _begins_file(lines, at)]
    return bool(heads) and all(_EXTENDED.match(line) or not line.strip() for _, line in lines[: heads[0]])


def _begins_file(lines: list[Line], at: int) -> bool:
    return (
        at + 2 < len(lines)
        and lines[at][1].startswith("--- ")
        and lines[at + 1][1].startswith("+++ ")
        and lines[at + 2][1].startswith("@@")
    )


def _unified_files(lines: list[Line]) -> Iterator[FilePatch]:
    starts = [at for at in range(len(lines)) if _begins_file(lines, at)]
    for start, end in pairwise((*starts, len(lines))):
        body = lines[start + 2 : end]
        while body and (_EXTENDED.match(body[-1][1]) or not body[-1][1]):  # the head of the next file
            body.pop()
        old, new = (line[4:].partition("\t")[0].strip() for _, line in lines[start : start + 2])
        prefixed = old.startswith(("a/", "/dev/null")) and new.startswith(("b/", "/dev/null"))
        old, new = (path[2:] if prefixed and path != "/dev/null" else path for path in (old, new))
        if old == "/dev/null":
            yield FilePatch("add", new, text=_added([line for line in body if line[1][:2] not in ("@@", "\\ ")]))
        elif new == "/dev/null":
            yield FilePatch("delete", old)
        elif old == new:
            yield _updated(lines[start][0], old, body)
        else:
            raise PatchError(f"Line {lines[start][0]}: {old} and {new} differ. To move a file, use '*** Move to: '.")


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
    at: int | None = None
    for number, line in body:
        if line.startswith("@@"):
            if lines:
                yield _chunk(headers, lines, at=at)
                headers, lines, at = [], [], None
            if stated := _RANGE.fullmatch(line.rstrip()):
                at = int(stated[1])
                continue
            name = line[2:].removeprefix(" ").removesuffix(" @@")
            if name.strip():
                headers.append(name)
        elif line.strip() == END_OF_FILE:
            yield _chunk(headers, lines, at_end=True, at=at)
            headers, lines, at = [], [], None
        elif line.startswith("\\ No newline"):
            continue
        elif not line:
            lines.append((" ", ""))
        elif line[0] == " " or line[0] == "-" or line[0] == "+":
            sign: Sign = " " if line[0] == " " else "-" if line[0] == "-" else "+"
            lines.append((sign, line[1:]))
        else:
            raise PatchError(f"Line {number}: a line of a change starts with ' ', '-' or '+', or is '@@'.")
    if any(sign != " " or text for sign, text in lines):
        yield _chunk(headers, lines, at=at)


def _chunk(headers: list[str], lines: list[tuple[Sign, str]], *, at_end: bool = False, at: int | None = None) -> Chunk:
    return Chunk(tuple(headers), tuple(lines), at_end, at)


_SHOWN = 8
"""Most line numbers in an error."""
_FORMS: tuple[Callable[[str], str], ...] = (lambda line: line, str.rstrip, str.strip, plain_line)
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
            index = lines.find([header], cursor)
            if index is None:
                raise PatchError(f"Change {number}: the line after @@ was not found: {header[:200]!r}.")
            cursor = index + 1
        same = sum(later.old == chunk.old and later.headers == chunk.headers for later in chunks[number - 1 :])
        start, taken = _place(lines, chunk, cursor, number, same)
        pieces += lines.pieces(chunk, start, taken)
        cursor = start + taken
    try:
        return splice(file, pieces)
    except EditError as error:
        raise PatchError(str(error).replace("new_string", "A new line")) from error


def _place(lines: _Lines, chunk: Chunk, cursor: int, number: int, same: int) -> tuple[int, int]:
    """The line where the chunk begins, and how many lines it covers. ``same`` is how many chunks from this one on
    change the same lines.

    Raises:
        PatchError: there is no such place, or more than the chunks that change one.
    """
    old = chunk.old
    if not old and chunk.line is not None and lines.texts:
        raise PatchError(
            f"Change {number} has no line of the file around the new ones. Add some, with ' ' before them."
        )
    if not old:
        return (cursor if chunk.headers and not chunk.at_end else len(lines.texts)), 0
    for wanted in (old, old[:-1] if not old[-1] else []):
        if not wanted:
            continue
        if chunk.at_end:
            at_end = lines.find(wanted, max(cursor, len(lines.texts) - len(wanted)))
            if at_end is not None:
                return at_end, len(wanted)
        starts = lines.find_all(wanted, cursor)
        if len(starts) > same and chunk.line is not None and chunk.line - 1 in starts:
            return chunk.line - 1, len(wanted)
        if len(starts) > same and not chunk.headers:
            shown = ", ".join(str(at + 1) for at in starts[:_SHOWN]) + (", …" if len(starts) > _SHOWN else "")
            raise PatchError(
                f"Change {number}: its lines match {len(starts)} places, at lines {shown}. Begin it with @@ and the "
                "enclosing line, or add lines around it until it is unique."
            )
        if starts:
            return starts[0], len(wanted)
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
        return next(iter(self.find_all(wanted, start)), None)

    def find_all(self, wanted: Sequence[str], start: int) -> list[int]:
        """Where the lines are, in the strictest form in which they are anywhere."""
        for index, form in enumerate(_FORMS):
            have = self._forms.get(index)
            if have is None:
                have = self._forms[index] = [form(line) for line in self.texts]
            asked = [form(line) for line in wanted]
            starts: list[int] = []
            for at in range(start, len(have) - len(asked) + 1):
                if have[at] == asked[0] and have[at : at + len(asked)] == asked:
                    starts.append(at)
            if starts:
                return starts
        return []

    def pieces(self, chunk: Chunk, start: int, taken: int) -> list[Piece]:
        """Replacements as characters ``start`` to ``end`` and the new text, indented as the lines around it are in the
        file."""
        made: list[Piece] = []
        pairs = list(zip(self.texts[start : start + taken], chunk.old, strict=False))
        at, begin, added = start, start, list[str]()
        for sign, text in (*chunk.lines, (" ", None)):
            if sign == "+" and text is not None:
                margin = margin_of(pairs, text, whole=True)
                added.append(text if margin is None else margin + text.lstrip())
                pairs += [(added[-1], text)] if margin is not None and text.strip() else []
            elif sign == "-":
                at += 1
            else:
                if added or at > begin:
                    made.append(self._piece(begin, at, added))
                    added = []
                at = min(at + 1, start + taken)
                begin = at
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
