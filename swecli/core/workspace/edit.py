"""Replacing a string in a file so that only the matched bytes change.

Matching is exact, but LF in the searched string also matches CRLF in the file, because models see files with LF; the
new string then takes the line ends of its place. Where nothing matches, the only text that is the same but for white
space or typography is taken (``other_form.py``).
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from swecli.core.workspace.other_form import in_other_form, plain
from swecli.core.workspace.text_file import TextFile
from swecli.lazy_pattern import lazy_pattern

_WORD = lazy_pattern(r"\w+")
_UNIT = lazy_pattern(r"\w+|[^\w\s]")
_NUMBERED = lazy_pattern(r"[ \t]*(?:[Ll](?:ine )?)?\d+(?:\t|[ \t]*[\u2192\u2502|]|:)")
"""A line number, as read_file and other programs show it."""
_ESCAPE = lazy_pattern(r"\\([ntr\"'])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_LEFT_OUT = lazy_pattern(
    r"[ \t]*(?:#|//|/\*|<!--|--|;|%|\{/\*)?[ \t]*"
    r"(?:(?:\.{3}|\u2026)[ \t]*(?:\(?[\w ,'/-]{0,60}\)?(?:\.{3}|\u2026)?)?"
    r"|[\w ,'/-]{0,60}\b(?:code|rest|existing|unchanged|same|before|lines)\b[\w ,'/-]{0,40}(?:\.{3}|\u2026))"
    r"[ \t]*(?:\*/\}?|-->)?[ \t]*"
)
"""A line that stands for others: "# ... existing code ..."."""

_MAX_LINES = 50_000
_MAX_LINE = 400
_MAX_WINDOW = 60
_CANDIDATES = 16
_NEAR = 3
_SHOWN = 8
_CLOSE = 0.5
_MAX_ASKED = 200_000


def explain_miss(text: str, wanted: str) -> str:
    """Why ``wanted`` is not in ``text``, in one or a few sentences for the model.

    The cost is bounded: long texts, lines and strings are examined in part.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")[:_MAX_LINES]]
    asked = wanted.replace("\r\n", "\n").split("\n")
    if not text:
        return "old_string was not found: the file is empty. Use an empty old_string or write_file to fill it."
    slip = _slip("\n".join(lines), asked)
    if slip:
        return f"old_string was not found: {slip}"
    window = [line for line in asked if line.strip()]
    if not window:
        return "old_string was not found: it contains only white space. Include a neighbouring line of text."
    start = _same_but_for_form(lines, asked)
    if start is None:
        start = _closest(lines, asked)
    if start is None:
        return "old_string was not found, and no text is close to it. Read the file again before editing it."
    return _report(lines, asked, start)


def _slip(text: str, asked: Sequence[str]) -> str:
    """What is known to be wrong with ``asked`` as a whole, and what to do, in a clause and a sentence; empty if
    nothing."""
    import html  # whose tables take a quarter of a megabyte

    whole = "\n".join(asked)[:_MAX_ASKED]
    if all(_NUMBERED.match(line) for line in asked if line.strip()) and whole.strip():
        cut = [_NUMBERED.sub("", line, count=1) for line in asked]
        for bare in ("\n".join(line.removeprefix(" ") for line in cut), "\n".join(cut)):
            if bare.strip() and bare in text:
                at = text.count("\n", 0, text.find(bare)) + 1
                return (
                    f"it contains line numbers. Leave out the number and the sign after it; without them it is at line "
                    f"{at}."
                )
    if (plain := _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), whole)) != whole and plain in text:
        return (
            "it has a backslash and a letter or quote where the file has a line break, a tab or a quote. Write the "
            "characters themselves, in new_string too."
        )
    if (plain := html.unescape(whole)) != whole and plain in text:
        return "it has HTML escapes such as &lt; where the file has the characters. Write these, in new_string too."
    placeholder = next((line for line in asked if left_out(line) and line not in text), "")
    if placeholder and len(asked) > 1:
        return (
            f"its line {placeholder.strip()[:80]!r} stands for lines that it leaves out. Quote every line, or make one "
            "edit for each part."
        )
    return ""


def left_out(line: str) -> bool:
    """Whether a line looks like a placeholder for other lines."""
    return len(line) < 160 and ("..." in line or "\u2026" in line) and _LEFT_OUT.fullmatch(line) is not None


def _form(line: str) -> str:
    """The line without details that vary easily: white space, quotes, dashes, Unicode form."""
    return "".join(plain(unicodedata.normalize("NFC", line)).split())


def _same_but_for_form(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    filled = [index for index, line in enumerate(asked) if line.strip()]
    skipped, core = filled[0], asked[filled[0] : filled[-1] + 1]
    forms, wanted = [_form(line[:_MAX_LINE]) for line in lines], [_form(line[:_MAX_LINE]) for line in core]
    for start in range(len(forms) - len(wanted) + 1):
        if forms[start] == wanted[0] and forms[start : start + len(wanted)] == wanted:
            return max(0, start - skipped)
    if len(wanted) == 1:
        line_index = next((index for index, form in enumerate(forms) if wanted[0] in form), None)
        return line_index if line_index is None else max(0, line_index - skipped)
    return None


def _closest(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """Start of the window of lines most like ``asked``, or None if none is close."""
    asked = asked[:_MAX_WINDOW]
    size = len(asked)
    weights = Counter(word for line in asked for word in set(_WORD.findall(line[:_MAX_LINE])))
    scores = [sum(weights[word] > 0 for word in set(_WORD.findall(line[:_MAX_LINE]))) for line in lines]
    starts = max(1, len(lines) - size + 1)
    rolling = sum(scores[:size])
    ranked: list[tuple[int, int]] = []
    for start in range(starts):
        ranked.append((-rolling, start))
        rolling += (scores[start + size] if start + size < len(scores) else 0) - scores[start]
    ranked.sort()
    best, best_ratio = None, _CLOSE
    matcher: SequenceMatcher[str] = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(_units(asked, size))
    for score, start in ranked[:_CANDIDATES]:
        if score == 0:
            break
        matcher.set_seq1(_units(lines[start : start + size], size))
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = start, ratio
    return None if best is None else _aligned(lines, asked, best)


def _aligned(lines: Sequence[str], asked: Sequence[str], start: int) -> int:
    """The start near ``start`` from which most lines are equal."""

    def equal(at: int) -> int:
        return sum(have == want for have, want in zip(lines[at : at + len(asked)], asked, strict=False))

    near = [start, *(at for at in range(start - _NEAR, start + _NEAR + 1) if 0 <= at < len(lines))]
    return max(near, key=equal)


def _units(lines: Sequence[str], size: int) -> Sequence[str]:
    """Units of comparison: characters of a short text, words and signs of a long one (cost is quadratic)."""
    text = "\n".join(line[:_MAX_LINE] for line in lines)
    return text[:400] if size <= 2 else _UNIT.findall(text)[:600]


def _report(lines: Sequence[str], asked: Sequence[str], start: int) -> str:
    end = min(len(lines), start + len(asked))
    where = f"line {start + 1}" if end == start + 1 else f"lines {start + 1}-{end}"
    closest, differs, first = lines[start:end], "", 0
    for offset, (have, want) in enumerate(zip(closest, asked, strict=False)):
        if not _fits(have, want, first=offset == 0, last=offset == len(asked) - 1):
            differs = f" First difference, line {start + offset + 1}, {_kind(have, want)}:"
            differs += f"\n  file: {_visible(have)}\n  yours: {_visible(want)}"
            first = max(0, min(offset - _SHOWN // 2, len(closest) - _SHOWN)) if offset >= _SHOWN else 0
            break
    before = "  …\n" if first else ""
    shown = before + _numbered(closest[first : first + _SHOWN], start + first + 1)
    more = "\n  …" if len(closest) > first + _SHOWN else ""
    return (
        f"old_string was not found. The closest text is at {where}:\n{shown}{more}\n{differs.strip()}".rstrip()
        + "\nCopy the text exactly as it is in the file."
    )


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>5}\t{line[:_MAX_LINE]}" for number, line in enumerate(lines, first))


def _fits(have: str, want: str, *, first: bool, last: bool) -> bool:
    """Whether a line of the file matches one of ``old_string``, whose first line may begin and last line end inside a
    line."""
    if first:
        return want in have if last else have.endswith(want)
    return have.startswith(want) if last else have == want


def _kind(have: str, want: str) -> str:
    """The difference between two lines, in a few words."""
    if have.strip() == want.strip():
        if have.rstrip() == want.rstrip():
            return "white space at the end of the line"
        tabs = "\t" in have[: len(have) - len(have.lstrip())]
        return "indentation" + (" (the file uses tabs)" if tabs and not want.startswith("\t") else "")
    if "".join(have.split()) == "".join(want.split()):
        return "white space inside the line"
    if plain(have).split() == plain(want).split():
        return "typographic quotes or dashes"
    if _form(have) == _form(want):
        return "typographic or composed characters"
    return "other text"


def _visible(line: str) -> str:
    shown = line[:_MAX_LINE].replace("\t", "\\t").replace("\u00a0", "\\u00a0")
    trailing = len(shown) - len(shown.rstrip(" "))
    return (shown[: len(shown) - trailing] + "·" * trailing) if trailing else shown


MAX_COUNTED = 1_000
"""Limit for counting matches; more are reported as "more than"."""
_SHOWN_LINES = 12
_SHOWN_PLACES = 4
"""Most matches that are shown with the lines around them."""
_TELLING = 8
"""Characters from which a text that is already there is hardly there by chance."""


class EditError(Exception):
    """The edit is impossible; the message says why and what to do next. Nothing was changed."""


class Edited(Struct, frozen=True):
    """The bytes after the edit. ``lines`` are the line numbers (from 1) of the matches in the old text, ``difference``
    what the searched string had in another form than the file."""

    data: bytes
    count: int
    lines: tuple[int, ...]
    difference: str = ""


class Replacement(Struct, frozen=True):
    """One of several edits. ``every``: all matches instead of the only one."""

    old: str
    new: str
    every: bool = False


class _Span(Struct, frozen=True):
    """A match, in characters of the text."""

    start: int
    end: int


def replace_string(file: TextFile, old: str, new: str, *, replace_all: bool = False) -> Edited:
    """Replace ``old`` by ``new``: the only match, or every match with ``replace_all``.

    An empty ``old`` is valid only for an empty file, whose content becomes ``new``.

    Raises:
        EditError: no match, several matches, nothing to change, or text that the encoding can't represent.
    """
    if old == new:
        raise EditError("old_string and new_string are the same: there is nothing to change.")
    if not old:
        if file.text or file.tail:
            raise EditError(
                "old_string is empty but the file is not. Quote the text next to the new text and repeat it in "
                "new_string, or use write_file to replace the whole file."
            )
        return Edited(file.bom + _encode(file, new), 1, (1,))
    spans = _find(file.text, old, overlapping=not replace_all)
    if not spans:
        return _in_other_form(file, old, new, replace_all=replace_all)
    if not replace_all and len(spans) > 1:
        raise EditError(_ambiguous(file.text, spans))
    breaks = _line_breaks(file.text)
    data = splice(file, [(span.start, span.end, _with_line_ends(file.text, breaks, span, old, new)) for span in spans])
    if data == file.raw:
        raise EditError("The edit would change nothing: the file keeps its line endings.")
    return Edited(data, len(spans), tuple(_line_of(file.text, spans)))


def _in_other_form(file: TextFile, old: str, new: str, *, replace_all: bool) -> Edited:
    """The edit of the only place that is ``old`` but for its form.

    Raises:
        EditError: there is no such place, or several; all were meant; or ``new`` is there already.
    """
    made_before = _made_before(file.text, new)
    folded, quoted, written = (text.replace("\r\n", "\n") for text in (file.text, old, new))
    place = None if replace_all or made_before else in_other_form(folded, quoted, written)
    if place is None:
        raise EditError(explain_miss(file.text, old) + made_before)
    pairs = _pair_positions(file.text)
    span = _Span(place.start + bisect_left(pairs, place.start), place.end + bisect_left(pairs, place.end))
    text = _with_line_ends(file.text, _line_breaks(file.text), span, old, place.text)
    data = splice(file, [(span.start, span.end, text)])
    if data == file.raw:
        raise EditError("The edit would change nothing: the file keeps its form.")
    return Edited(data, 1, tuple(_line_of(file.text, [span])), place.difference)


def replace_all_of(file: TextFile, edits: Sequence[Replacement]) -> Edited:
    """Apply several edits in order, each to the result of the previous ones: all of them or none. ``lines`` are those
    of each edit's first match, in the text it was applied to.

    Raises:
        EditError: one is impossible; the message says which. Nothing was changed.
    """
    if len(edits) == 1:
        return replace_string(file, edits[0].old, edits[0].new, replace_all=edits[0].every)
    count, lines, now, differences = 0, list[int](), file, list[str]()
    for number, edit in enumerate(edits, 1):
        try:
            done = replace_string(now, edit.old, edit.new, replace_all=edit.every)
        except EditError as error:
            raise EditError(f"Edit {number} of {len(edits)}: {error} No edit was made.") from error
        count += done.count
        lines.append(done.lines[0])
        differences += [done.difference] if done.difference and done.difference not in differences else []
        now = now.holding(done.data)
    if now.raw == file.raw:
        raise EditError("Together the edits would change nothing.")
    return Edited(now.raw, count, tuple(lines), " and ".join(differences))


def _find(text: str, old: str, *, overlapping: bool) -> list[_Span]:
    """Matches of ``old``, LF matching CRLF; overlapping ones are counted up to a limit.

    A string that ends with CR may end inside a CRLF pair, so it is matched literally.
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
    step, count = 1 if overlapping else len(wanted), 0
    at = text.find(wanted)
    while at >= 0 and (not overlapping or count <= MAX_COUNTED):
        yield at, at + len(wanted)
        count += 1
        at = text.find(wanted, at + step)


def splice(file: TextFile, pieces: Sequence[tuple[int, int, str]]) -> bytes:
    """The file's bytes with characters ``start`` to ``end`` replaced by a text, for each of the ordered, disjoint
    ``pieces``; all other bytes are slices of the original.

    Raises:
        EditError: the encoding can't represent a text.
    """
    parts: list[bytes] = []
    char = 0
    byte = copied = len(file.bom)
    for start, end, text in pieces:
        byte += len(file.encode(file.text[char:start]))
        parts.append(file.raw[copied:byte])
        parts.append(_encode(file, text))
        byte += len(file.encode(file.text[start:end]))
        char, copied = end, byte
    return file.bom + b"".join(parts) + file.raw[copied:]


def _line_breaks(text: str) -> list[int]:
    """Positions of all LF, found once for all matches: searching from each match would reread a long line."""
    positions: list[int] = []
    at = text.find("\n")
    while at >= 0:
        positions.append(at)
        at = text.find("\n", at + 1)
    return positions


def _with_line_ends(text: str, breaks: Sequence[int], span: _Span, old: str, new: str) -> str:
    """``new`` with the line ends of its place, unless ``old`` contained CRLF and so asked for exact text."""
    matched = text[span.start : span.end]
    if "\r\n" in old and matched == old:
        return new
    if "\n" in matched:
        crlf = "\r\n" in matched
    else:
        after = bisect_left(breaks, span.end)
        near = breaks[min(after, len(breaks) - 1)] if breaks else -1
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
            f"new_string has the character {char!a} (U+{ord(char):04X}), which {file.label} cannot represent. Use "
            "another character, or convert the file's encoding first."
        ) from error


def _line_of(text: str, spans: list[_Span]) -> Iterator[int]:
    line, at = 1, 0
    for span in spans:
        line += text.count("\n", at, span.start)
        at = span.start
        yield line


def _made_before(text: str, new: str) -> str:
    """A sentence if ``new`` is already there; empty if not, or if it is too short to tell."""
    spans = _find(text, new, overlapping=True) if len(new.strip()) >= _TELLING else []
    if len(spans) != 1:
        return ""
    (line,) = _line_of(text, spans)
    return f"\nnew_string is already in the file, at line {line}: the edit may have been made before."


def _ambiguous(text: str, spans: list[_Span]) -> str:
    numbers = list(_line_of(text, spans[: _SHOWN_LINES + 1]))
    many = len(spans) > MAX_COUNTED
    count = f"more than {MAX_COUNTED:,}" if many else str(len(spans))
    shown = ", ".join(map(str, numbers[:_SHOWN_LINES])) + (", …" if len(spans) > _SHOWN_LINES else "")
    places = ""
    if len(spans) <= _SHOWN_PLACES:
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        last = [number + text.count("\n", span.start, span.end) for number, span in zip(numbers, spans, strict=True)]
        around = [(max(number - 2, 0), end + 1) for number, end in zip(numbers, last, strict=True)]
        places = "\n  …\n".join(_numbered(lines[start:end][:_SHOWN], start + 1) for start, end in around)
    return (
        f"old_string matches {count} places, at lines {shown}. Add lines around the one you mean until it is "
        "unique, or set replace_all to change all of them." + (f" The places:\n{places}" if places else "")
    )
