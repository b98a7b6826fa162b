"""Colour schemes: the few colours a theme names, and every tone derived from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.lazy_pattern import lazy_pattern

AA = 4.5
"""Text contrast required by WCAG 2.1, level AA."""

BLACK, WHITE = "#000000", "#ffffff"

_HEX = lazy_pattern(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")


def normal(colour: str) -> str:
    """The colour as ``#rrggbb`` in lower case.

    Raises:
        ValueError: it is not ``#rgb`` or ``#rrggbb``.
    """
    if not _HEX.fullmatch(colour):
        raise ValueError(f"{colour[:40]!r} is not a colour; write it as #rrggbb")
    digits = colour[1:].lower()
    return "#" + ("".join(digit * 2 for digit in digits) if len(digits) == 3 else digits)


@lru_cache(maxsize=1024)
def luminance(colour: str) -> float:
    """Relative luminance, 0 (black) to 1 (white)."""

    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(value) for value in _rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def is_dark(colour: str) -> bool:
    """Whether white text is easier to read on it than black text."""
    return contrast(colour, WHITE) >= contrast(colour, BLACK)


def mix(colour: str, other: str, share: float) -> str:
    """Blend of ``colour`` with a ``share`` (0..1) of ``other``."""
    parts = (round(a + (b - a) * share) for a, b in zip(_rgb(colour), _rgb(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


Seen = Callable[[str], str]
"""Maps a colour to the one that a terminal shows."""


def exact(colour: str) -> str:
    """The colour on a terminal that shows every colour exactly."""
    return colour


@lru_cache(maxsize=4096)
def of_256(colour: str) -> str:
    """The colour on a terminal with 256 colours."""
    from rich.color import Color, ColorSystem

    return Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


def legible(text: str, grounds: Sequence[str], seen: Seen = exact) -> str:
    """``text``, moved towards white or black as little as needed for legibility on all ``grounds``. If that is
    impossible, the better of the two."""
    behind = [seen(ground) for ground in grounds]
    pole = max((WHITE, BLACK), key=lambda end: min(contrast(end, ground) for ground in behind))
    for step in range(33):
        moved = mix(text, pole, step / 32)
        if all(contrast(seen(moved), ground) >= AA for ground in behind):
            return moved
    return pole


def ground(wanted: str, base: str, seen: Seen = exact) -> str:
    """``wanted`` as a background beside ``base``: moved towards ``base`` until either white or black is legible on
    both, with room for colours."""
    pole = WHITE if is_dark(seen(base)) else BLACK
    reach = min(AA * 1.25, contrast(pole, seen(base)))
    for step in range(17):
        moved = mix(wanted, base, step / 16)
        if contrast(pole, seen(moved)) >= reach:
            return moved
    return base


def apart(wanted: str, base: str, end: str, seen: Seen = exact) -> str:
    """``wanted``, moved towards ``end`` until the terminal shows it differently from ``base``."""
    for step in range(17):
        moved = mix(wanted, end, step / 16)
        if seen(moved) != seen(base):
            return moved
    return wanted


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


Depth = Literal["none", "16", "256", "truecolor"]

_FORCED: dict[str, Depth] = {"0": "none", "1": "16", "2": "256", "3": "truecolor"}
_SYSTEMS: dict[Depth, str] = {"none": "standard", "16": "standard", "256": "256", "truecolor": "truecolor"}


def depth(environ: Mapping[str, str]) -> Depth:
    """Colour depth from ``NO_COLOR`` (if not empty), ``FORCE_COLOR`` (0 to 3), ``COLORTERM`` and ``TERM``."""
    if environ.get("NO_COLOR"):
        return "none"
    forced = _FORCED.get(environ.get("FORCE_COLOR", "").strip())
    if forced is not None:
        return forced
    if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "truecolor"
    term = environ.get("TERM", "").lower()
    if term.endswith("-direct") or "kitty" in term or "ghostty" in term or "alacritty" in term:
        return "truecolor"
    if "256" in term:
        return "256"
    return "none" if term.startswith(("vt", "dumb")) else "16"


def colour_system(found: Depth) -> str:
    """Textual's name for the depth."""
    return _SYSTEMS[found]


class Scheme(Struct, frozen=True):
    """Colours as ``#rrggbb``. ``accent`` marks selected or active things, ``muted`` is secondary text, ``panel`` the
    background of bars; the others are named by their looks."""

    name: str
    background: str
    foreground: str
    panel: str
    muted: str
    accent: str
    red: str
    orange: str
    yellow: str
    green: str
    cyan: str
    blue: str
    purple: str
    selection: str
    coarse: bool = False
    """Whether it is shown in 256 colours and must be legible in these."""

    @property
    def dark(self) -> bool:
        return is_dark(self.background)


COLOURS: tuple[str, ...] = tuple(name for name in Scheme.__struct_fields__ if name not in ("name", "coarse"))
"""Names of the colours in a theme file."""

REQUIRED = ("background", "foreground")
"""Colours required in a theme file; the rest is derived from them and the default themes."""


class SchemeError(ValueError):
    """A theme file can't be used; ``key`` is the faulty entry."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def scheme_of(name: str, colours: Mapping[str, object]) -> Scheme:
    """Build a scheme from the content of a theme file.

    Raises:
        SchemeError: a colour is missing, unknown or no colour.
    """
    normalised: dict[str, str] = {}
    for key, value in colours.items():
        if key not in COLOURS:
            raise SchemeError(key, f"{key} is not a theme colour; theme colours are: {', '.join(COLOURS)}")
        if not isinstance(value, str):
            raise SchemeError(key, f'{key} must be a string such as "#7aa2f7"')
        try:
            normalised[key] = normal(value)
        except ValueError as error:
            raise SchemeError(key, f"{key}: {error}") from None
    for key in REQUIRED:
        if key not in normalised:
            raise SchemeError(key, f"{key} is missing")
    base = DARK if is_dark(normalised["background"]) else LIGHT
    back, front = normalised["background"], normalised["foreground"]
    derived = {
        "panel": mix(back, front, 0.08),
        "muted": mix(front, back, 0.4),
        "accent": normalised.get("blue", base.accent),
        "selection": mix(back, normalised.get("blue", base.blue), 0.35),
    }
    return replace(
        base,
        name=name,
        coarse=False,
        **{key: normalised.get(key) or derived.get(key) or getattr(base, key) for key in COLOURS},
    )


DARK = Scheme(
    "swecli-dark",
    background="#14161c",
    foreground="#d5d9e2",
    panel="#20242e",
    muted="#8b919e",
    accent="#7aa2f7",
    red="#f7768e",
    orange="#ff9e64",
    yellow="#e0af68",
    green="#8fc66b",
    cyan="#7dcfff",
    blue="#7aa2f7",
    purple="#bb9af7",
    selection="#33467c",
)

LIGHT = Scheme(
    "swecli-light",
    background="#fbfaf7",
    foreground="#22262e",
    panel="#ecebe6",
    muted="#5f6672",
    accent="#2457c5",
    red="#b3261e",
    orange="#a8480b",
    yellow="#8a5a00",
    green="#2f7d32",
    cyan="#0b6a8f",
    blue="#2457c5",
    purple="#6f3fb0",
    selection="#bcd2ff",
)


class Tones(Struct, frozen=True):
    """Backgrounds: ``background``, ``panel``, ``selection``, ``added``, ``removed``, ``added_word``, ``removed_word``,
    ``match``, ``match_current``. ``rule`` is for lines without text, ``track`` for the empty part of a bar. The rest is
    text."""

    background: str
    panel: str
    selection: str
    added: str
    removed: str
    added_word: str
    removed_word: str
    match: str
    match_current: str
    rule: str
    track: str
    text: str
    muted: str
    accent: str
    success: str
    warning: str
    error: str
    link: str
    code: str
    number: str
    keyword: str
    type: str
    function: str
    string: str
    on_selection: str
    on_added: str
    on_removed: str
    on_added_word: str
    on_removed_word: str
    on_match: str

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Every combination of text and background on the screen: their names and colours."""
        plain = ("text", "muted", "accent", "success", "warning", "error", "link", "code")
        program = ("number", "keyword", "type", "function", "string")
        for name in (*plain, *program, "error", "muted"):
            yield f"{name} on background", getattr(self, name), self.background
        for name in plain:
            yield f"{name} on panel", getattr(self, name), self.panel
        for name in (*program, "muted", "error"):
            yield f"{name} on added", getattr(self, name), self.added
            yield f"{name} on removed", getattr(self, name), self.removed
        yield "selected text", self.on_selection, self.selection
        yield "text added", self.on_added, self.added
        yield "text removed", self.on_removed, self.removed
        yield "word added", self.on_added_word, self.added_word
        yield "word removed", self.on_removed_word, self.removed_word
        yield "match", self.on_match, self.match
        yield "current match", self.on_match, self.match_current


_IN_256 = {True: ("#005f00", "#5f0000", "#008700", "#870000"), False: ("#d7ffd7", "#ffd7d7", "#afffaf", "#ffafaf")}
"""Grounds of added and removed lines and words in 256 colours, on dark and on light: these show mixed ones as greys."""


def _changed_grounds(scheme: Scheme) -> tuple[str, ...]:
    """Grounds of added and removed lines, and of added and removed words."""
    back, colours = scheme.background, (scheme.green, scheme.red) * 2
    if scheme.coarse:
        return tuple(
            apart(tint, back, colour, of_256) for tint, colour in zip(_IN_256[scheme.dark], colours, strict=True)
        )
    shares = (0.16, 0.16, 0.36, 0.36)
    tints = ((mix(back, colour, share), colour) for colour, share in zip(colours, shares, strict=True))
    return tuple(ground(apart(tint, back, colour), back) for tint, colour in tints)


@lru_cache(maxsize=64)
def tones_of(scheme: Scheme) -> Tones:
    """Colours of the scheme, lightened or darkened for legibility on their backgrounds."""
    seen = of_256 if scheme.coarse else exact
    text_on, back_for = partial(legible, seen=seen), partial(ground, seen=seen)
    back = scheme.background
    panel = back_for(apart(scheme.panel, back, scheme.foreground, seen), back)
    selection = back_for(apart(scheme.selection, back, scheme.blue, seen), back)
    added, removed, added_word, removed_word = _changed_grounds(scheme)
    plain = (back, panel)
    program = (*plain, added, removed)
    match = mix(scheme.yellow, back, 0.15)
    current = mix(scheme.orange, back, 0.0)
    return Tones(
        background=back,
        panel=panel,
        selection=selection,
        added=added,
        removed=removed,
        added_word=added_word,
        removed_word=removed_word,
        match=match,
        match_current=back_for(current, match),
        rule=mix(back, scheme.muted, 0.45),
        track=mix(back, scheme.muted, 0.3),
        text=text_on(scheme.foreground, plain),
        muted=text_on(scheme.muted, program),
        accent=text_on(scheme.accent, plain),
        success=text_on(scheme.green, plain),
        warning=text_on(scheme.yellow, plain),
        error=text_on(scheme.red, program),
        link=text_on(scheme.cyan, plain),
        code=text_on(scheme.purple, plain),
        number=text_on(scheme.orange, program),
        keyword=text_on(scheme.purple, program),
        type=text_on(scheme.cyan, program),
        function=text_on(scheme.blue, program),
        string=text_on(scheme.green, program),
        on_selection=text_on(scheme.foreground, (selection,)),
        on_added=text_on(mix(scheme.foreground, scheme.green, 0.3), (added,)),
        on_removed=text_on(mix(scheme.foreground, scheme.red, 0.3), (removed,)),
        on_added_word=text_on(scheme.foreground, (added_word,)),
        on_removed_word=text_on(scheme.foreground, (removed_word,)),
        on_match=text_on(back, (match, back_for(current, match))),
    )


VARIABLES = {
    "track": "ansi_default",
    "track-end": "ansi_default",
    "muted-style": "none",
    "chosen-style": "bold",
    "selection-style": "none",
}
"""swecli's own style variables, with their defaults."""
