"""Patches in the form that some models are trained on: ``*** Begin Patch``, then files to add, update, delete or move.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@ def total(items):
         context
    -old line
    +new line
    *** Add File: notes.txt
    +text
    *** Delete File: c.py
    *** End Patch

Places are found by their context, not by numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_HEAD = re.compile(r"\*\*\* (Add|Update|Delete) File: *(.+?) *")
_MOVE = re.compile(r"\*\*\* Move to: *(.+?) *")
_HEREDOC = re.compile(r"(?:apply_patch\s+)?<<\s*(['\"]?)(\w+)\1\s*\n(.*)\n\2\s*", re.DOTALL)
_FENCE = re.compile(r"```\w*\n(.*)\n```\s*", re.DOTALL)


class PatchError(Exception):
    """The text is no such patch, or it does not fit; the message says where and why. Nothing was changed."""


Sign = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One place. ``headers`` are lines above it that lead there; ``at_end``: it is the end of the file."""

    headers: tuple[str, ...]
    lines: tuple[tuple[Sign, str], ...]
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that are there now."""
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What happens to one file. ``text`` is the content of a new one."""

    action: Literal["add", "update", "delete"]
    path: str
    move_to: str | None = None
    chunks: tuple[Chunk, ...] = ()
    text: str = ""


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch, in its order. A patch that came in a here-document or a code fence is unpacked.

    Raises:
        PatchError: it is none, or a part of it is not of the form.
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
            raise PatchError(f"Line {number}: every line of a new file begins with '+'.")
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
            raise PatchError(f"Line {number}: a line of a change begins with ' ', '-' or '+', or is '@@'.")
    if any(sign != " " or text for sign, text in lines):
        yield _chunk(headers, lines)


def _chunk(headers: list[str], lines: list[tuple[Sign, str]], *, at_end: bool = False) -> Chunk:
    return Chunk(tuple(headers), tuple(lines), at_end)
