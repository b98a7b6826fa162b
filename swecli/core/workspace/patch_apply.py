"""Finding the places of a patch in a file and changing them, so that all other bytes stay.

Context may differ from the file in white space at the ends of lines, in indentation, and in typographic quotes and
dashes: the first place that fits best is taken. Lines of context keep the bytes of the file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from io import StringIO

from swecli.core.workspace.edit import EditError, splice
from swecli.core.workspace.nearest import explain_miss
from swecli.core.workspace.patch_format import Chunk, PatchError
from swecli.core.workspace.text_file import TextFile

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
"""How alike is alike, from the strictest on."""

Piece = tuple[int, int, str]


def patched(file: TextFile, chunks: Sequence[Chunk]) -> bytes:
    """The file's bytes after the changes.

    Raises:
        PatchError: a place is not found, or the encoding can't hold a new line. Nothing was changed.
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
    why = explain_miss("\n".join(lines.texts), "\n".join(old)).replace("old_string", "the context")
    raise PatchError(f"Change {number}: {why}")


class _Lines:
    """The lines of a file: their texts without ends, their ends, and where each begins (in characters)."""

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
        """The first place from ``start`` on, in the strictest form that has any."""
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
        """What is replaced, as characters ``start`` to ``end`` and the new text."""
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
        """Lines ``first`` up to ``end`` become ``added``. A file without a newline at its end stays without."""
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
