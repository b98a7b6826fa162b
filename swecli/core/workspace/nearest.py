"""Why a string was not found in a text: the closest region, and in what it differs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

_WORD = re.compile(r"\w+")
_UNIT = re.compile(r"\w+|[^\w\s]")
_NUMBERED = re.compile(r"\s*\d+\t")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "\u00a0": " "})

_MAX_LINES = 50_000
_MAX_LINE = 400
_MAX_WINDOW = 60
_CANDIDATES = 16
_SHOWN = 8
_CLOSE = 0.5


def explain_miss(text: str, wanted: str) -> str:
    """One or a few sentences for the model about why ``wanted`` is not in ``text``.

    Cost is bounded: long texts, long lines and long strings are looked at in part.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")[:_MAX_LINES]]
    asked = wanted.replace("\r\n", "\n").split("\n")
    if not text:
        return "old_string was not found: the file is empty. Use an empty old_string or write_file to fill it."
    if len(asked) > 1 or _NUMBERED.match(asked[0]):
        bare = [_NUMBERED.sub("", line, count=1) for line in asked]
        if all(_NUMBERED.match(line) for line in asked if line.strip()) and "\n".join(bare) in "\n".join(lines):
            return (
                "old_string was not found: it contains the line numbers that read_file shows. "
                "Leave the number and the tab after it out."
            )
    window = [line for line in asked if line.strip()]
    if not window:
        return "old_string was not found: it holds only white space. Include a neighbouring line of text."
    start = _same_but_for_form(lines, asked)
    if start is None:
        start = _closest(lines, asked)
    if start is None:
        return "old_string was not found, nor anything close to it. Read the file again before editing it."
    return _report(lines, asked, start)


def _form(line: str) -> str:
    """The line without what is easily written differently: white space, quotes, dashes, Unicode form."""
    return "".join(unicodedata.normalize("NFC", line).translate(_QUOTES).split())


def _trimmed(asked: Sequence[str]) -> tuple[int, list[str]]:
    """``asked`` without blank lines at both ends, and how many were cut at the start."""
    first = next(index for index, line in enumerate(asked) if line.strip())
    last = max(index for index, line in enumerate(asked) if line.strip())
    return first, list(asked[first : last + 1])


def _same_but_for_form(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    skipped, core = _trimmed(asked)
    forms, wanted = [_form(line[:_MAX_LINE]) for line in lines], [_form(line[:_MAX_LINE]) for line in core]
    for start in range(len(forms) - len(wanted) + 1):
        if forms[start] == wanted[0] and forms[start : start + len(wanted)] == wanted:
            return max(0, start - skipped)
    if len(wanted) == 1:
        found = next((index for index, form in enumerate(forms) if wanted[0] in form), None)
        return found if found is None else max(0, found - skipped)
    return None


def _closest(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """Start of the window of lines most like ``asked``, or None when nothing is close."""
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
    return best


def _units(lines: Sequence[str], size: int) -> Sequence[str]:
    """What is compared: characters of a short text, words and signs of a long one (cost is quadratic)."""
    text = "\n".join(line[:_MAX_LINE] for line in lines)
    return text[:400] if size <= 2 else _UNIT.findall(text)[:600]


def _report(lines: Sequence[str], asked: Sequence[str], start: int) -> str:
    end = min(len(lines), start + len(asked))
    where = f"line {start + 1}" if end == start + 1 else f"lines {start + 1}-{end}"
    found, differs = lines[start:end], ""
    for offset, (have, want) in enumerate(zip(found, asked, strict=False)):
        if have != want and want not in have:
            differs = f" First difference, line {start + offset + 1}, {_kind(have, want)}:"
            differs += f"\n  file: {_visible(have)}\n  yours: {_visible(want)}"
            break
    shown = "\n".join(f"{start + 1 + index:>5}\t{line[:_MAX_LINE]}" for index, line in enumerate(found[:_SHOWN]))
    more = "\n  …" if len(found) > _SHOWN else ""
    return (
        f"old_string was not found. The closest text is at {where}:\n{shown}{more}\n{differs.strip()}".rstrip()
        + "\nCopy the text exactly as the file has it."
    )


def _kind(have: str, want: str) -> str:
    """In what two lines differ, in a few words."""
    if have.strip() == want.strip():
        if have.rstrip() == want.rstrip():
            return "white space at the end of the line"
        tabs = "\t" in have[: len(have) - len(have.lstrip())]
        return "indentation" + (" (the file uses tabs)" if tabs and not want.startswith("\t") else "")
    if "".join(have.split()) == "".join(want.split()):
        return "white space inside the line"
    if have.translate(_QUOTES).split() == want.translate(_QUOTES).split():
        return "typographic quotes or dashes"
    if _form(have) == _form(want):
        return "typographic or composed characters"
    return "other text"


def _visible(line: str) -> str:
    """The line with tabs and invisible spaces as escapes."""
    shown = line[:_MAX_LINE].replace("\t", "\\t").replace("\u00a0", "\\u00a0")
    trailing = len(shown) - len(shown.rstrip(" "))
    return (shown[: len(shown) - trailing] + "·" * trailing) if trailing else shown
