"""What is taken out of the terminal's input before keys are parsed: pastes as one object, long runs of letters that
came at once, colour reports."""

from __future__ import annotations

import re
from dataclasses import dataclass

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"

_REPORT = re.compile(r"\x1b\]1[01];(?:rgb:([0-9a-fA-F/]{5,14}))?[^\x07\x1b]*(?:\x07|\x1b\\)")
_PARTIAL = re.compile(r"\x1b(?:\[2(?:0|00)?|\](?:1[01]?(?:;[^\x07\x1b]{0,40}\x1b?)?)?)\Z")
_ALT = re.compile(r"\x1b([a-z0-9\x7f])")
_RUN = re.compile(r"[^\x00-\x1f\x7f-\x9f]{33,}")
"""More letters than anybody types between two reads: a paste of a terminal that does not mark pastes."""
_LONGEST_TYPED = 32
_SEQUENCE = re.compile(r"\[[0-?]*[ -/]*[@-~]|O[ -~]")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O|[\]P_^X][^\x07\x1b]*)?\Z")
_NOT_A_NUMBER = re.compile(r"\x1b\[<[^mM\x1b]{0,24}NaN[^mM\x1b]{0,24}[mM]")


@dataclass(frozen=True, slots=True)
class Keys:
    """Input for the key parser."""

    text: str


@dataclass(frozen=True, slots=True)
class Alt:
    """A key with Alt, which terminals send as Esc and the key; ``key`` is its name."""

    key: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """One whole bracketed paste."""

    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """Many letters that came at once."""

    text: str


@dataclass(frozen=True, slots=True)
class Background:
    """The terminal's background colour as three shares, 0..1."""

    red: float
    green: float
    blue: float

    @property
    def dark(self) -> bool:
        return 0.2126 * self.red + 0.7152 * self.green + 0.0722 * self.blue < 0.5


Piece = Keys | Alt | Pasted | Run | Background


class InputFilter:
    """Cuts decoded input into keys, pastes and reports. A key parser that walks a paste character by
    character takes seconds for some megabytes; here a paste costs a search for its end."""

    def __init__(self) -> None:
        self._held = ""
        self._paste: list[str] | None = None
        self._within = False
        """Whether the keys so far end in the middle of a sequence."""

    def feed(self, text: str) -> list[Piece]:
        """Take a chunk; an unfinished marker at its end is held back until more comes or ``flush``."""
        text, self._held = self._held + text, ""
        out: list[Piece] = []
        while text:
            text = self._outside(text, out) if self._paste is None else self._inside(text, out)
        return out

    def flush(self) -> list[Piece]:
        """What was held back turns out to be keys: nothing has followed it."""
        self._within = False
        if self._paste is not None or not self._held:
            return []
        held, self._held = self._held, ""
        return [Keys(held)]

    def _outside(self, text: str, out: list[Piece]) -> str:
        before, marker, rest = text.partition(PASTE_START)
        if marker:
            self._paste = []
        elif partial := _PARTIAL.search(before):
            before, self._held = before[: partial.start()], partial.group()
        if before:
            self._keys(before, out)
        return rest

    def _inside(self, text: str, out: list[Piece]) -> str:
        assert self._paste is not None
        body, marker, rest = text.partition(PASTE_END)
        if marker:
            pasted = "".join((*self._paste, body))
            self._paste = None
            out.append(Pasted(pasted.replace("\x00", "")))
            return rest
        keep = next((n for n in range(min(len(PASTE_END) - 1, len(body)), 0, -1) if PASTE_END.startswith(body[-n:])), 0)
        if keep:
            body, self._held = body[:-keep], body[-keep:]
        self._paste.append(body)
        return ""

    def _keys(self, text: str, out: list[Piece]) -> None:
        if "NaN" in text:
            text = _NOT_A_NUMBER.sub("", text)
        position = 0
        for report in _REPORT.finditer(text):
            if report.start() > position:
                self._split(text[position : report.start()], out)
            position = report.end()
            if report.group(1) and (colour := _colour(report.group(1))):
                out.append(colour)
        if position < len(text):
            self._split(text[position:], out)

    def _split(self, text: str, out: list[Piece]) -> None:
        """Keys with Alt as pieces of their own: a key parser that waits whether more belongs to them loses what came
        in the same read."""
        position = 0
        for found in _ALT.finditer(text):
            if found.start() > position:
                self._runs(text[position : found.start()], out)
            out.append(Alt("backspace" if found[1] == "\x7f" else found[1]))
            position = found.end()
        if position < len(text):
            self._runs(text[position:], out)

    def _runs(self, text: str, out: list[Piece]) -> None:
        """Long runs of letters as pieces of their own, unless they are part of a sequence that the terminal sent."""
        within, self._within = self._within, _UNFINISHED.search(text) is not None
        position = 0
        for found in _RUN.finditer(text):
            start = found.start()
            if start == 0 and within:
                continue
            if start and text[start - 1] == "\x1b":
                sequence = _SEQUENCE.match(text, start)
                start = sequence.end() if sequence is not None else found.end()
            if found.end() - start > _LONGEST_TYPED:
                if start > position:
                    out.append(Keys(text[position:start]))
                out.append(Run(text[start : found.end()]))
                position = found.end()
        if position < len(text):
            out.append(Keys(text[position:]))


def _colour(text: str) -> Background | None:
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in parts)
    return Background(red, green, blue)
