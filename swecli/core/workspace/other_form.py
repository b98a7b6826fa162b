"""Text that a model quotes in another form than the file has it: with other indentation, white space or typography.

Models that read tabs, no-break spaces or typographic quotes often write them as spaces and plain signs; others leave
out or add one level of indentation, in about one of ten edits
(https://github.com/earendil-works/pi/issues/7836, https://github.com/anthropics/claude-code/issues/29869).
Such a quote is taken for the only text that is the same but for its form, and what is written in its place gets the
file's form: its characters where nothing changed, its indentation where lines are new.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("‘’‚‛", "'"),
        **dict.fromkeys("“”„‟", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)
_PIECE = lazy_pattern(r"[\w\u0300-\u036f]+|\s+|[^\w\s]")
_MOST, _MOST_LINES = 100_000, 2_000
"""Most characters and lines of a quote that are compared; longer ones must be exact."""
_MOST_SEARCHED = 50_000
"""Most lines of a file that are compared."""
_MOST_PIECES = 1_500
"""Most pieces of a line that are compared to keep the file's form of those that did not change."""

Pair = tuple[str, str]
"""A line of the file, and the same line as the model quoted it."""


class OtherForm(Struct, frozen=True):
    """A place of the file, in characters, and the new text for it in the file's form. ``difference`` names what the
    quote had in another form."""

    start: int
    end: int
    text: str
    difference: str


def plain(text: str) -> str:
    """The text with plain quotes, dashes and spaces, of the same length."""
    return text.translate(_PLAIN)


def plain_line(line: str) -> str:
    """The line with plain signs, composed characters and single spaces, without white space at its ends."""
    return " ".join(plain(unicodedata.normalize("NFC", line)).split())


def in_other_form(text: str, old: str, new: str) -> OtherForm | None:
    """The only place of ``text`` that is ``old`` but for its form: it differs by typographic signs, or it is whole
    lines that differ in white space, too. None if there are several, or if the form of ``new`` there is uncertain. All
    texts have LF as line ends."""
    if not old.strip() or max(len(old), len(new)) > _MOST or max(old.count("\n"), new.count("\n")) > _MOST_LINES:
        return None
    folded, wanted = plain(text), plain(old)
    at = folded.find(wanted)
    if at < 0:
        return _of_lines(text, old, new)
    if folded.find(wanted, at + 1) >= 0:
        return None
    return OtherForm(at, at + len(old), _kept(text[at : at + len(old)], old, new), "typographic signs")


def _of_lines(text: str, old: str, new: str) -> OtherForm | None:
    above = _line_ends(old, new)
    below = _line_ends(old[above:][::-1], new[above:][::-1])
    quoted = old[above : len(old) - below].split("\n")
    written = new[above : len(new) - below].split("\n")
    with_end = len(quoted) > 1 and not quoted[-1]
    if with_end:
        quoted.pop()
        written = [] if written == [""] else written
    lines = text.split("\n")
    wanted = [plain_line(line) for line in quoted]
    if len(lines) > _MOST_SEARCHED:
        return None
    forms = [plain_line(line) for line in lines]
    last = len(forms) - len(wanted) - with_end
    matches = [at for at in range(last + 1) if forms[at] == wanted[0] and forms[at : at + len(wanted)] == wanted]
    if len(matches) != 1:
        return None
    first, after = matches[0], matches[0] + len(wanted)
    pairs = list(zip(lines[first:after], quoted, strict=True))
    made = rebased(pairs, written)
    if made is None:
        return None
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + sum(len(line) + 1 for line in lines[first:after]) - (not with_end)
    return OtherForm(start, end, "\n".join(made), _difference(pairs))


def _line_ends(one: str, other: str) -> int:
    """How many line ends both texts begin with."""
    return min(len(one) - len(one.lstrip("\n")), len(other) - len(other.lstrip("\n")))


def rebased(pairs: Sequence[Pair], new: Sequence[str]) -> list[str] | None:
    """``new`` lines in the form of the file, which the pairs show; None if their indentation is uncertain.

    Lines that were quoted and did not change are the file's. A changed one keeps the file's signs where it did not
    change.
    """
    have, quoted = [line for line, _ in pairs], [line for _, line in pairs]
    made: list[str] = []
    matcher = SequenceMatcher(None, quoted, new, autojunk=False)
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind == "equal":
            made += have[first:last]
            continue
        for offset, line in enumerate(new[begin:end]):
            margin = margin_of(pairs, line)
            if margin is None:
                return None
            body = line[len(_indent(line)) :]
            if last - first == end - begin:
                theirs, before = have[first + offset], quoted[first + offset]
                body = _kept(theirs[len(_indent(theirs)) :], before[len(_indent(before)) :], body)
            made.append(margin + body)
    return made


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def margin_of(pairs: Sequence[Pair], line: str, *, whole: bool = False) -> str | None:
    """The indentation for a new line in the form of the file, whose quoted lines lack or add a level, or have spaces
    for tabs; None if the pairs don't tell it. ``whole``: the first line was quoted with its indentation, too."""
    if not line.strip():
        return ""
    indent = _indent(line)
    indents = [(_indent(have), _indent(quoted)) for have, quoted in pairs if quoted.strip()]
    known = {have for have, quoted in indents if quoted == indent}
    if known:
        return known.pop() if len(known) == 1 else None
    fitted = _fitted(indents, indent)
    if whole or not indents or indents[0][1] or not indents[0][0]:
        return fitted
    # A quote may begin at the first word of its first line, which then tells nothing about the others.
    others = _fitted(indents[1:], indent)
    return others if fitted is None or fitted == others else None


def _fitted(indents: Sequence[Pair], indent: str) -> str | None:
    """``indent`` in the file's form, if all pairs of indentations differ in the same way."""
    if not indents or all(have == quoted for have, quoted in indents):
        return indent if indents else None
    have, quoted = indents[0]
    more, less = have.removesuffix(quoted), quoted.removesuffix(have)
    if all(ours == more + theirs for ours, theirs in indents):
        return more + indent
    if all(theirs == less + ours for ours, theirs in indents):
        return indent.removeprefix(less) if indent.startswith(less) else None
    return _converted(indents, indent, "\t", " ") or _converted(indents, indent, " ", "\t")


def _converted(indents: Sequence[Pair], indent: str, ours: str, theirs: str) -> str | None:
    """``indent``, made of ``theirs``, as so many of ``ours`` as the pairs have for it, in proportion or with an
    offset."""
    if indent.strip(theirs) or any(have.strip(ours) or quoted.strip(theirs) for have, quoted in indents):
        return None
    sizes = sorted({(len(quoted), len(have)) for have, quoted in indents})
    (before, least), (after, most) = sizes[0] if len(sizes) > 1 else (0, 0), sizes[-1]
    width, levels = after - before, most - least
    if width <= 0 or levels <= 0 or any((have - least) * width != (quoted - before) * levels for quoted, have in sizes):
        return None
    size, rest = divmod((len(indent) - before) * levels, width)
    return ours * (least + size) if not rest and least + size >= 0 else None


def _kept(have: str, quoted: str, new: str) -> str:
    """``new`` with the file's signs where it is the same as ``quoted``."""
    if have == quoted:
        return new
    theirs, asked, told = _PIECE.findall(have), _PIECE.findall(quoted), _PIECE.findall(new)
    if len(theirs) != len(asked) or max(len(asked), len(told)) > _MOST_PIECES:
        return new
    made: list[str] = []
    for kind, first, last, begin, end in SequenceMatcher(None, asked, told, autojunk=False).get_opcodes():
        made += theirs[first:last] if kind == "equal" else told[begin:end]
    return "".join(made)


def _difference(pairs: Sequence[Pair]) -> str:
    """What the quoted lines have in another form, in words."""
    if any(_indent(line) != _indent(quoted) for line, quoted in pairs if quoted.strip()):
        return "indentation"
    if any(plain(line).split() != quoted.split() for line, quoted in pairs):
        return "typographic signs"
    return "white space"
