"""Replacing a string in a file so that only the matched bytes change.

Matching is exact but for one thing: LF in the searched string also matches CRLF in the file, because that is
how a file is shown to a model. The new string then takes the line ends of the place where it goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from swecli.core.workspace.nearest import explain_miss
from swecli.core.workspace.text_file import TextFile

MAX_COUNTED = 1_000
"""Matches are counted up to here; more are reported as "more than"."""
_SHOWN_LINES = 12


class EditError(Exception):
    """The edit can't be made; the message says why and what to do next. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The bytes after the edit. ``lines`` are the lines (from 1) of the old text where a match begins."""

    data: bytes
    count: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """One edit of several. ``every``: all matches, not the only one."""

    old: str
    new: str
    every: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    """A match, in characters of the text."""

    start: int
    end: int


def replace_string(file: TextFile, old: str, new: str, *, replace_all: bool = False) -> Edited:
    """Replace ``old`` by ``new``: the one match, or every match with ``replace_all``.

    An empty ``old`` is accepted for an empty file only, whose content then becomes ``new``.

    Raises:
        EditError: no match, more than one, nothing to change, or text that the encoding can't hold.
    """
    if old == new:
        raise EditError("old_string and new_string are the same: there is nothing to change.")
    if not old:
        if file.text or file.tail:
            raise EditError(
                "old_string is empty but the file is not. Quote the text that the new text goes next to and "
                "repeat it in new_string, or use write_file to replace the whole file."
            )
        return Edited(file.bom + _encode(file, new), 1, (1,))
    spans = _find(file.text, old, overlapping=not replace_all)
    if not spans:
        raise EditError(explain_miss(file.text, old))
    if not replace_all and len(spans) > 1:
        raise EditError(_ambiguous(file.text, spans))
    data = splice(file, [(span.start, span.end, _with_line_ends(file.text, span, old, new)) for span in spans])
    if data == file.raw:
        raise EditError("The edit would leave the file as it is: line ends are kept as the file has them.")
    return Edited(data, len(spans), tuple(_line_of(file.text, spans)))


def replace_all_of(file: TextFile, edits: Sequence[Replacement]) -> Edited:
    """Make several edits one after the other, each in what the ones before it made: all of them or none.
    ``lines`` are those of the first match of each edit, in the text that it met.

    Raises:
        EditError: one of them can't be made; the message says which. Nothing was changed.
    """
    if len(edits) == 1:
        return replace_string(file, edits[0].old, edits[0].new, replace_all=edits[0].every)
    count, lines, now = 0, list[int](), file
    for number, edit in enumerate(edits, 1):
        try:
            done = replace_string(now, edit.old, edit.new, replace_all=edit.every)
        except EditError as error:
            raise EditError(f"Edit {number} of {len(edits)}: {error} None of the edits was made.") from error
        count += done.count
        lines.append(done.lines[0])
        now = now.holding(done.data)
    if now.raw == file.raw:
        raise EditError("Together the edits would leave the file as it is.")
    return Edited(now.raw, count, tuple(lines))


def _find(text: str, old: str, *, overlapping: bool) -> list[_Span]:
    """Matches of ``old``, LF matching CRLF; overlapping ones are counted up to a limit.

    A string that ends with CR may end inside of a CRLF pair, so it is taken to the letter.
    """
    if old.endswith("\r"):
        return [_Span(start, end) for start, end in _occurrences(text, old, overlapping)]
    folded, wanted = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    pairs = _pair_positions(text)
    spans = [
        _Span(start + bisect_left(pairs, start), end + bisect_left(pairs, end))
        for start, end in _occurrences(folded, wanted, overlapping)
    ]
    return spans or [_Span(start, end) for start, end in _occurrences(text, old, overlapping)]


def _pair_positions(text: str) -> list[int]:
    """Positions, in the text with CRLF folded to LF, of the line ends that were CRLF."""
    positions: list[int] = []
    at = text.find("\r\n")
    while at >= 0:
        positions.append(at - len(positions))
        at = text.find("\r\n", at + 2)
    return positions


def _occurrences(text: str, wanted: str, overlapping: bool) -> Iterator[tuple[int, int]]:
    step, found = 1 if overlapping else len(wanted), 0
    at = text.find(wanted)
    while at >= 0 and (not overlapping or found <= MAX_COUNTED):
        yield at, at + len(wanted)
        found += 1
        at = text.find(wanted, at + step)


def splice(file: TextFile, pieces: Sequence[tuple[int, int, str]]) -> bytes:
    """The file's bytes with characters ``start`` to ``end`` replaced by a text, for each of ``pieces``, which are in
    order and apart; all other bytes are slices of the original.

    Raises:
        EditError: the encoding can't hold a text.
    """
    parts: list[bytes] = []
    char = 0
    byte = kept = len(file.bom)
    for start, end, text in pieces:
        byte += len(file.encode(file.text[char:start]))
        parts.append(file.raw[kept:byte])
        parts.append(_encode(file, text))
        byte += len(file.encode(file.text[start:end]))
        char, kept = end, byte
    return file.bom + b"".join(parts) + file.raw[kept:]


def _with_line_ends(text: str, span: _Span, old: str, new: str) -> str:
    """``new`` with the line ends of its place, unless ``old`` spelled CRLF out and so asked for exact text."""
    matched = text[span.start : span.end]
    if "\r\n" in old and matched == old:
        return new
    if "\n" in matched:
        crlf = "\r\n" in matched
    else:
        after = text.find("\n", span.end)
        near = after if after >= 0 else text.rfind("\n", 0, span.start)
        crlf = near > 0 and text[near - 1] == "\r"
    if crlf:
        return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new if matched == old else new.replace("\r\n", "\n")


def _encode(file: TextFile, new: str) -> bytes:
    try:
        return file.encode_new(new)
    except UnicodeEncodeError as error:
        char = error.object[error.start]
        raise EditError(
            f"new_string has the character {char!a} (U+{ord(char):04X}), which {file.label} can't hold. "
            "Use a character that it has, or convert the file's encoding first."
        ) from error


def _line_of(text: str, spans: list[_Span]) -> Iterator[int]:
    line, at = 1, 0
    for span in spans:
        line += text.count("\n", at, span.start)
        at = span.start
        yield line


def _ambiguous(text: str, spans: list[_Span]) -> str:
    lines = [str(line) for line in _line_of(text, spans[: _SHOWN_LINES + 1])]
    many = len(spans) > MAX_COUNTED
    count = f"more than {MAX_COUNTED:,}" if many else str(len(spans))
    shown = ", ".join(lines[:_SHOWN_LINES]) + (", …" if len(spans) > _SHOWN_LINES else "")
    return (
        f"old_string matches {count} places, at lines {shown}. Add lines around the one you mean until it is "
        "unique, or set replace_all to change all of them."
    )
