"""Cells of the screen as strings: one character for what a cell shows, one for how it looks. Strings of C's speed
compare and move them, so that a frame costs little. And the sequences that select a look (ECMA-48, SGR)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.cells import split_graphemes
from rich.color import ColorSystem
from rich.style import Style

from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from textual.strip import Strip

Row = tuple[str, str]
"""Texts and looks of neighbouring cells, both as long as there are cells."""

UNKNOWN = "\x01"
"""Text of a cell of which it is not known what the terminal shows."""
_REST = "\x00"
"""Text of the second cell of a wide character."""
PLAIN = "\x00"
"""The look without colours and attributes."""
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))
_FIRST_STAND_IN = 0xF0000
"""Characters from here on stand for texts of several characters, and for characters of these planes."""
_MOST = 20_000
"""Stand-ins, or looks, up to which the tables grow."""

UNSURE = lazy_pattern("[^\0](?=\0)|[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0010ffff]")
"""Cells whose width terminals disagree about: wide characters, emoji, clusters."""

_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}
_ATTRIBUTES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "blink2": "6",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
    "underline2": "21",
    "frame": "51",
    "encircle": "52",
    "overline": "53",
}
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29"}
_OFF |= {"51": "54", "52": "54", "53": "55"}
_SEEN_ON_BLANKS = frozenset(("4", "7", "9", "21", "51", "52", "53"))


class Look(Struct, frozen=True):
    """Colours and attributes as parameters of SGR, empty for the terminal's own; ``link`` as parameters of OSC 8."""

    attributes: tuple[str, ...] = ()
    foreground: str = ""
    background: str = ""
    link: str = ""

    @property
    def blank(self) -> Look:
        """The simplest look in which a blank is the same."""
        if self.link or not _SEEN_ON_BLANKS.isdisjoint(self.attributes):
            return self
        return Look(background=self.background)


class Cells:
    """Converts strips to cells and back. ``colours`` is the console's colour system."""

    def __init__(self, colours: str | None) -> None:
        self._system = _SYSTEMS.get(colours or "", ColorSystem.TRUECOLOR)
        self._looks: dict[Look, str] = {Look(): PLAIN}
        self._known: list[Look] = [Look()]
        self._of_style: dict[Style | None, tuple[str, str]] = {None: (PLAIN, PLAIN)}
        self._changes: dict[tuple[str, str], str] = {}
        self._stand_ins: dict[str, str] = {}
        self._texts: dict[int, str] = {ord(_REST): ""}
        """What each stand-in stands for, and what the second cell of a wide character adds: nothing."""
        self._spread: dict[str, str] = {}

    @property
    def full(self) -> bool:
        """Whether the tables have grown so large that they are better built anew."""
        return max(len(self._known), len(self._texts), len(self._of_style), len(self._spread)) > _MOST

    def of(self, strip: Strip) -> Row:
        """The cells of a strip. Blanks at the ends of its segments have the simplest look."""
        texts: list[str] = []
        looks: list[str] = []
        for text, style, control in strip:
            if control or not text:
                continue
            look, blank = self._of_style.get(style) or self._add_style(style)
            if not (text.isascii() and text.isprintable()):
                text = self._spread.get(text) or self._add_text(text, texts)
            inner = text.lstrip(" ")
            if look == blank or not inner:
                looks.append(blank * len(text))
            else:
                before, length = len(text) - len(inner), len(inner.rstrip(" "))
                looks.append(blank * before + look * length + blank * (len(inner) - length))
            texts.append(text)
        return "".join(texts), "".join(looks)

    def written(self, text: str) -> str:
        """The characters that show these texts."""
        return text if text.isascii() and _REST not in text else text.translate(self._texts)

    def change(self, before: str, after: str) -> str:
        """The shortest sequence from one look to another."""
        known = self._changes.get((before, after))
        if known is None:
            known = self._changes[before, after] = _change(self._known[ord(before)], self._known[ord(after)])
        return known

    def is_blank(self, look: str) -> bool:
        """Whether erased cells can have this look."""
        known = self._known[ord(look)]
        return known == Look(background=known.background)

    def same_blank(self, look: str, other: str) -> bool:
        """Whether blanks have the same appearance in both looks."""
        return self._known[ord(look)].blank == self._known[ord(other)].blank

    def has_background(self, look: str) -> bool:
        return bool(self._known[ord(look)].background)

    def _add_style(self, style: Style | None) -> tuple[str, str]:
        look = _look(style or Style.null(), self._system)
        numbers = self._of_style[style] = (self._number(look), self._number(look.blank))
        return numbers

    def _number(self, look: Look) -> str:
        number = self._looks.get(look)
        if number is None:
            number = self._looks[look] = chr(len(self._known))
            self._known.append(look)
        return number

    def _add_text(self, text: str, before: list[str]) -> str:
        """The text with one character for each cell. What has no width joins the cell before it."""
        spans, _ = split_graphemes(text)
        cells: list[str] = []
        for start, end, width in spans:
            cluster = text[start:end].translate(_CONTROLS)
            if width:
                simple = len(cluster) == 1 and ord(cluster) < _FIRST_STAND_IN
                cells.append(cluster if simple else self._stand_in(cluster))
                cells.extend(_REST * (width - 1))
            elif before and cluster:
                joined = before.pop()
                head = joined.rstrip(_REST)
                cluster = self._texts.get(ord(head[-1]), head[-1]) + cluster
                before.append(head[:-1] + self._stand_in(cluster) + joined[len(head) :])
        whole = "".join(cells)
        if spans[0][2]:
            self._spread[text] = whole
        return whole

    def _stand_in(self, cluster: str) -> str:
        known = self._stand_ins.get(cluster)
        if known is None:
            known = self._stand_ins[cluster] = chr(_FIRST_STAND_IN + len(self._stand_ins))
            self._texts[ord(known)] = cluster
        return known


def _look(style: Style, system: ColorSystem) -> Look:
    attributes = tuple(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    fore, back = (
        "" if colour is None else ";".join(colour.downgrade(system).get_ansi_codes(foreground))
        for colour, foreground in ((style.color, True), (style.bgcolor, False))
    )
    link = f"id={style.link_id};{style.link}" if style.link else ""
    return Look(attributes, "" if fore == "39" else fore, "" if back == "49" else back, link)


def _change(before: Look, after: Look) -> str:
    link = "" if before.link == after.link else f"\x1b]8;{after.link or ';'}\x1b\\"
    anew = _sgr((*after.attributes, after.foreground, after.background))
    whole = f"\x1b[0;{anew}m" if anew else "\x1b[m"
    ended = dict.fromkeys(_OFF[code] for code in before.attributes if code not in after.attributes)
    begun = (code for code in after.attributes if code not in before.attributes or _OFF[code] in ended)
    fore = after.foreground or "39" if after.foreground != before.foreground else ""
    back = after.background or "49" if after.background != before.background else ""
    partial = _sgr(chain(ended, begun, (fore, back)))
    return link + min(f"\x1b[{partial}m" if partial else "", whole, key=len)


def _sgr(codes: Iterable[str]) -> str:
    return ";".join(filter(None, codes))


def erases_in_colour(environ: Mapping[str, str]) -> bool:
    """Whether cells that this terminal erases take the background colour that is selected: all of today do, but screen
    erases in the terminal's own colour. tmux, which may call itself screen, follows the others."""
    if environ.get("TMUX"):
        return True
    return not environ.get("STY") and not environ.get("TERM", "").startswith("screen")
