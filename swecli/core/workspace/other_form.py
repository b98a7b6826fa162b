"""Text that a model quotes in another form than the file has it: with other indentation, white space or typography.

Models that read tabs, no-break spaces or typographic quotes often write them as spaces and plain signs; others leave
out or add one level of indentation, in about one of ten edits
(https://github.com/earendil-works/pi/issues/7836, https://github.com/anthropics/claude-code/issues/29869).
Such a quote is taken for the only text that is the same but for its form, and what is written in its place gets the
file's form: its characters where nothing changed, its indentation where lines are new.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from itertools import pairwise

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
_PLAIN_WORD = lazy_pattern(r"[A-Za-z0-9_]+(?![\u0300-\u036f])")
_PIECE = lazy_pattern(r"[\w\u0300-\u036f]+|\s+|[^\w\s]")
_MOST, _MOST_LINES = 100_000, 2_000
"""Most characters and lines of a quote that are compared; longer ones must be exact."""
_MOST_SEARCHED = 50_000
"""Most lines of a file that are compared."""
_MOST_CANDIDATES = 1_000
"""Most occurrences of a word of the quote that are looked at one by one."""
_MOST_COMPARED = 50_000
"""Most pairs of equal lines, or of equal pieces of a line, among those that are aligned."""

_MOST_CHANGED = 10_000
"""Most pairs of an old and a new line among the changed ones."""

Pair = tuple[str, str]
"""A line of the file, and the same line as the model quoted it."""
Blocks = list[tuple[str, int, int, int, int]]
"""Parts of two sequences, as in ``SequenceMatcher.get_opcodes``."""


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
    places = _places(text, old)
    if not places:
        return _of_lines(text, old, new)
    if len(places) > 1:
        return None
    at = places[0]
    around = text[text.rfind("\n", 0, at) + 1 : at], text[at + len(old) :].partition("\n")[0]
    if any(beside.isspace() for beside in around) and (old[0].isspace() or "\n" in old + new):
        return _of_lines(text, old, new)  # with less indentation, or without white space at the end
    pairs = list(zip(text[at : at + len(old)].split("\n"), old.split("\n"), strict=True))
    made = rebased(pairs, new.split("\n"), text.split("\n"))
    return OtherForm(at, at + len(old), "\n".join(made), "typographic signs") if made is not None else None


def _places(text: str, old: str) -> list[int]:
    """Where ``old`` is but for typographic signs; two places at most."""
    wanted, key = plain(old), _key(old)
    if not key or text.count(key) > _MOST_CANDIDATES:
        folded = plain(text)
        first = folded.find(wanted)
        return [at for at in (first, folded.find(wanted, first + 1) if first >= 0 else -1) if at >= 0]
    places, offset, occurrence = list[int](), old.index(key), text.find(key)
    while occurrence >= 0 and len(places) < 2:
        at = occurrence - offset
        if at >= 0 and plain(text[at : at + len(old)]) == wanted:
            places.append(at)
        occurrence = text.find(key, occurrence + 1)
    return places


def _key(text: str) -> str:
    """The longest word that is written in one way only; empty without one."""
    return max(_PLAIN_WORD.findall(text), key=len, default="")


def _of_lines(text: str, old: str, new: str) -> OtherForm | None:
    above = old.startswith("\n") and new.startswith("\n")
    below = old.endswith("\n") and new[above:].endswith("\n")
    quoted = old[above : len(old) - below].split("\n")
    written = new[above : len(new) - below].split("\n")
    with_end = not below and not quoted[-1]
    if with_end:
        quoted.pop()
        written = [] if written == [""] else written
    lines = text.split("\n")
    wanted = [plain_line(line) for line in quoted]
    last = len(lines) - len(wanted) - with_end
    if len(lines) > _MOST_SEARCHED or not any(wanted):
        return None
    keys = [_key(line) for line in wanted]
    index = max(range(len(keys)), key=lambda at: (len(keys[at]), len(wanted[at])))
    starts = (at - index for at, line in enumerate(lines) if keys[index] in line)
    likely = [at for at in starts if 0 <= at <= last and plain_line(lines[at + index]) == wanted[index]]
    matches = [at for at in likely if [*map(plain_line, lines[at : at + len(wanted)])] == wanted]
    if len(matches) != 1:
        return None
    first, after = matches[0], matches[0] + len(wanted)
    if with_end and written and lines[after]:
        return None  # the next line would follow in the same line
    pairs = list(zip(lines[first:after], quoted, strict=True))
    made = rebased(pairs, written, lines)
    if made is None:
        return None
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + sum(len(line) + 1 for line in lines[first:after]) - (not with_end)
    return OtherForm(start, end, "\n".join(made), _difference(pairs))


def rebased(pairs: Sequence[Pair], new: Sequence[str], lines: Sequence[str]) -> list[str] | None:
    """``new`` lines in the form of the file, which the pairs show; None if it is uncertain. ``lines`` are all of the
    file.

    Lines that were quoted and did not change are the file's. A changed one keeps the file's signs where it did not
    change.
    """
    blocks = _blocks([quoted for _, quoted in pairs], new)
    made = [_in_form(pairs, new, way, lines) for way in blocks]
    # Where equal lines could be aligned in two ways, the file's form of the line that stays is a guess.
    return made[0] if made and made[0] == made[-1] else None


def _in_form(pairs: Sequence[Pair], new: Sequence[str], blocks: Blocks, lines: Sequence[str]) -> list[str] | None:
    signs, usual, known = _odd_signs(pairs), {_indent(line) for line in lines if line.strip()}, list(pairs)
    changes = [block for block in blocks if block[0] != "equal"]
    gone = [pair for _, first, last, _, _ in changes for pair in pairs[first:last]]
    if len(gone) * sum(end - begin for *_, begin, end in changes) > _MOST_CHANGED:
        return None
    made, continued = list[str](), list[Pair]()
    for kind, first, last, begin, end in blocks:
        if kind == "equal":
            made += [have for have, _ in pairs[first:last]]
            continue
        for offset, line in enumerate(new[begin:end]):
            lost = pairs[first + offset : first + offset + 1] if last - first == end - begin else pairs[first:last]
            alike = [pair for pair in gone if _is_like(pair[1], line)]
            margins = {_indent(have) for have, quoted in alike if _indent(quoted) == _indent(line)}
            if not made and line.strip() and pairs[0][1].strip() and _indent(line) == _indent(pairs[0][1]):
                margins |= {_indent(pairs[0][0])}  # both may begin at their first word
            if margins:
                margin = margins.pop() if len(margins) == 1 else None
            else:
                margin = margin_of(known, line)
                margin = margin if margin is not None and _is_usual(margin, line, known, usual) else None
                known += [(f"{margin}.", line)] if margin is not None and line.strip() else []  # tells of deeper ones
            if margin is None:
                return None
            text = _behind_margin(pairs, gone, alike, line, signs)
            continued += [pair for pair in alike if pair[0].strip() != pair[1].strip()]
            cut = any(_end(have) not in ("", _end(quoted)) for have, quoted in lost)
            if text is None or (cut and not alike):
                return None
            made.append(margin + text)
    # Only one new line can be a line whose form is not that of the quote.
    return made if len(set(continued)) == len(continued) else None


def _odd_signs(pairs: Sequence[Pair]) -> set[str]:
    """Signs and words that the file has in another form than they were quoted."""
    pieces = ((_PIECE.findall(have.strip()), _PIECE.findall(quoted.strip())) for have, quoted in pairs)
    differing = ((theirs, ours) for theirs, ours in pieces if theirs != ours)
    return {
        mine
        for theirs, ours in differing
        for at, mine in enumerate(ours)
        if mine.strip(" ") and (len(theirs) != len(ours) or theirs[at] != mine)
    }


def _behind_margin(
    pairs: Sequence[Pair], gone: Sequence[Pair], alike: Sequence[Pair], line: str, signs: AbstractSet[str]
) -> str | None:
    """The text of a new line behind its indentation; None if its form is uncertain. ``gone``: the lines that it and
    others replace; ``alike``: those of them that it may be, changed."""
    text, end = line.strip(), _end(line)
    if not text:
        return ""
    if alike:
        kept = {_kept(have.strip(), quoted.strip(), text, signs) for have, quoted in alike}
        ends = {_end(have) if end == _end(quoted) else end for have, quoted in alike}
        only = kept.pop()
        return only + ends.pop() if only is not None and not kept and len(ends) == 1 else None
    pieces = _PIECE.findall(text)
    if not signs.isdisjoint(pieces) or any(_has_spaces_of(pair, pieces) for pair in gone):
        return None
    if not end or all(_end(have) == _end(quoted) for have, quoted in pairs):
        return text + end
    # The model puts white space behind every line.
    return text if all(_end(quoted) == end and not _end(have) for have, quoted in pairs if have.strip()) else None


def _has_spaces_of(pair: Pair, pieces: Sequence[str]) -> bool:
    """Whether white space that the file has in another form than quoted may go on in a new line of these pieces."""
    theirs, ours = (_PIECE.findall(line.strip()) for line in pair)
    if len(theirs) != len(ours):
        return True
    beside = {
        side
        for at, (their, mine) in enumerate(zip(theirs, ours, strict=True))
        if their != mine and mine.isspace()
        for side in ((ours[at - 1], mine), (mine, ours[at + 1]))
    }
    return not beside.isdisjoint(pairwise(pieces))


def _end(line: str) -> str:
    """White space behind the text of a line."""
    return line[len(line.rstrip()) :] if line.strip() else ""


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def margin_of(pairs: Sequence[Pair], line: str, *, whole: bool = False) -> str | None:
    """The indentation for a new line in the form of the file, whose quoted lines lack or add a level, or have spaces
    for tabs; None if the pairs don't tell it. ``whole``: the first line was quoted with its indentation, too."""
    if not line.strip():
        return line if all(have == quoted for have, quoted in pairs) else ""
    indent = _indent(line)
    indents = [(_indent(have), _indent(quoted)) for have, quoted in pairs if quoted.strip()]
    margin = _mapped(indents, indent)
    if whole or not indents or indents[0][1] or not indents[0][0]:
        return margin
    # A quote may begin at the first word of its first line, which then tells nothing about the others.
    others = _mapped(indents[1:], indent)
    return others if margin is None or margin == others else None


def _mapped(indents: Sequence[Pair], indent: str) -> str | None:
    known = {have for have, quoted in indents if quoted == indent}
    if known:
        return known.pop() if len(known) == 1 else None
    return _fitted(indents, indent)


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
    converted = _converted(indents, indent, "\t", " ")
    return _converted(indents, indent, " ", "\t") if converted is None else converted


def _converted(indents: Sequence[Pair], indent: str, ours: str, theirs: str) -> str | None:
    """``indent``, made of ``theirs``, as so many of ``ours`` as the pairs have for it, in proportion or with an
    offset. A single size may lack or add a level, too, so that it only tells about the next level."""
    if indent.strip(theirs) or any(have.strip(ours) or quoted.strip(theirs) for have, quoted in indents):
        return None
    sizes = sorted({(len(quoted), len(have)) for have, quoted in indents})
    (before, least), (after, most) = sizes[0] if len(sizes) > 1 else (0, 0), sizes[-1]
    width, levels = after - before, most - least
    if width <= 0 or levels <= 0 or any((have - least) * width != (quoted - before) * levels for quoted, have in sizes):
        return None
    size, rest = divmod((len(indent) - before) * levels, width)
    if len(sizes) == 1 and abs(len(indent) - after) * levels != width:
        return None
    return ours * (least + size) if not rest and least + size >= 0 else None


def _is_usual(margin: str, line: str, known: Sequence[Pair], usual: AbstractSet[str]) -> bool:
    """Whether a file with the ``usual`` indentations may have a new line with this one: that of other lines, or a level
    more than one that was quoted."""
    indent, usual = _indent(line), usual - {""}
    if not margin or not usual:
        return not margin or margin == indent  # without lines to compare, only what the model writes
    indents = [(_indent(have), _indent(quoted)) for have, quoted in known if quoted.strip()]
    converted = any(quoted and have != quoted and have.strip(quoted[0]) for have, quoted in indents)
    if converted and indent and (indent in usual or any(have == quoted != "" for have, quoted in indents)):
        return False  # some lines of the file have tabs, others spaces, and all were quoted with the same
    if any(quoted == indent for _, quoted in indents):
        return True
    if any(have for have, _ in indents) and all(have == quoted for have, quoted in indents):
        return True
    level = min(usual, key=len)
    # Spaces that were quoted as half as many are no shift by a level.
    if any((len(have) - len(quoted)) % len(level) for have, quoted in indents if not (have + quoted).strip(" ")):
        return False
    deepest = max(len(have) for have, _ in indents) + len(level)
    return len(margin) <= deepest and (margin in usual or any(margin == have + level for have, _ in indents))


def _kept(have: str, quoted: str, new: str, signs: AbstractSet[str]) -> str | None:
    """``new`` with the file's signs where it is the same as ``quoted``; None if they are uncertain."""
    theirs, asked, told = _PIECE.findall(have), _PIECE.findall(quoted), _PIECE.findall(new)
    if have == quoted:
        return new if signs.isdisjoint(set(told) - set(asked)) else None
    if len(theirs) != len(asked):
        return None
    made: list[str] = []
    for blocks in _blocks(asked, told):
        pieces: list[str] = []
        for kind, first, last, begin, end in blocks:
            alone = sum(not piece.isspace() for piece in told[begin:end]) < 2
            at_edge = first + begin == 0 or (last, end) == (len(asked), len(told))
            if not signs.isdisjoint(told[begin:end]) and (kind != "equal" or (alone and not at_edge)):
                return None
            pieces += theirs[first:last] if kind == "equal" else told[begin:end]
        made.append("".join(pieces))
    return made[0] if made and made[0] == made[-1] else None


def _is_like(one: str, other: str) -> bool:
    """Whether a line is another one, changed: two thirds of their words and signs are the same."""
    pieces, others = ([piece for piece in _PIECE.findall(line) if not piece.isspace()] for line in (one, other))
    common = Counter(pieces) & Counter(others)
    return 3 * common.total() >= len(pieces) + len(others) and any(piece[0].isalnum() for piece in common)


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[Blocks]:
    """What is equal and what is replaced, aligned from the beginning and from the end; nothing if that is too much
    work."""
    forward = _aligned(before, after)
    backward = _aligned(before[::-1], after[::-1])
    if forward is None or backward is None:
        return []
    size, other = len(before), len(after)
    return [
        forward,
        [
            (kind, size - last, size - first, other - end, other - begin)
            for kind, first, last, begin, end in reversed(backward)
        ],
    ]


def _aligned(before: Sequence[str], after: Sequence[str]) -> Blocks | None:
    same = _common(before, after)
    ending = _common(before[same:][::-1], after[same:][::-1])
    old, new = before[same : len(before) - ending], after[same : len(after) - ending]
    counts = Counter(new)
    if sum(counts[line] for line in old) > _MOST_COMPARED:
        return None
    blocks: Blocks = [("equal", 0, same, 0, same)]
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        blocks.append((kind, first + same, last + same, begin + same, end + same))
    return [*blocks, ("equal", len(before) - ending, len(before), len(after) - ending, len(after))]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    differing = (at for at, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs)
    return next(differing, min(len(one), len(other)))


def _difference(pairs: Sequence[Pair]) -> str:
    """What the quoted lines have in another form, in words."""
    if any(_indent(line) != _indent(quoted) for line, quoted in pairs if quoted.strip()):
        return "indentation"
    if any(plain(line).split() != quoted.split() for line, quoted in pairs):
        return "typographic signs"
    return "white space"
