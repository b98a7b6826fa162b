"""Styles of everything in the transcript, as one value that a theme can replace."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.style import Style
from textual.theme import Theme

from swecli.themes import scheme as schemes
from swecli.themes.scheme import Scheme, tones_of
from swecli.tui.preferences import DiffForm

style = Style.parse
"""A Rich style from its definition, for example ``bold #ff0000``."""


class CodeColours(Struct, frozen=True):
    """Colours of source code by kind of token."""

    keyword: Style
    name: Style
    function: Style
    string: Style
    number: Style
    comment: Style
    operator: Style
    error: Style


SPLIT_FROM: Final = 154
"""Width in cells of a transcript diff on a terminal with 160 columns."""


class Palette(Struct, frozen=True, kw_only=True):
    """All styles, and other properties of a row's appearance.

    Styles are layered over the widget's own colours, so they need no background. The palette is part of the key of
    every cached line: create one value per theme, not one per frame.
    """

    name: str
    text: Style = Style()
    dim: Style
    strong: Style = style("bold")
    accent: Style
    success: Style
    warning: Style
    error: Style
    user: Style = style("bold")
    user_mark: Style
    band: Style | None = None
    """Background of the user's messages; without it, a line precedes each of their rows."""
    reasoning: Style
    verb: Style = style("bold")
    target: Style = Style()
    rule: Style
    bar: Style
    bar_ends: Style
    """Style of the glyphs at a bar's ends, unneeded if the bar has a background."""
    heading: Style
    heading_small: Style = style("bold")
    emphasis: Style = style("italic")
    bold: Style = style("bold")
    strike: Style = style("strike")
    inline_code: Style
    link: Style
    quote: Style
    code: Style = Style()
    table_head: Style = style("bold")
    added: Style
    removed: Style
    added_word: Style
    removed_word: Style
    line_number: Style
    cursor: Style
    selection: Style
    match: Style
    match_current: Style
    tokens: CodeColours
    dark: bool = True
    split_from: int = SPLIT_FROM
    """Cells from which a diff is shown side by side."""
    expand: str = "Ctrl+O"
    """Key that shows hidden lines, as displayed."""


def palette_for(theme: Theme) -> Palette:
    scheme = getattr(theme, "scheme", None)
    return palette_of(scheme) if isinstance(scheme, Scheme) else TERMINAL


@lru_cache(maxsize=64)
def with_preferences(palette: Palette, form: DiffForm, expand: str) -> Palette:
    widths = {"auto": SPLIT_FROM, "split": 0, "unified": sys.maxsize}
    return replace(palette, split_from=widths[form], expand=expand)


@lru_cache(maxsize=64)
def palette_of(scheme: Scheme) -> Palette:
    """Palette of a scheme; all text is legible on its backgrounds."""
    tones = tones_of(scheme)

    def on(text: str, ground: str, prefix: str = "") -> Style:
        return style(f"{prefix} {text} on {ground}".strip())

    muted, accent = tones.muted, tones.accent
    return Palette(
        name=scheme.name,
        dark=scheme.dark,
        dim=style(muted),
        accent=style(accent),
        success=style(tones.success),
        warning=style(tones.warning),
        error=style(tones.error),
        user=style(tones.text),
        user_mark=style(f"bold {accent}"),
        band=style(f"on {tones.panel}"),
        reasoning=style(f"italic {muted}"),
        rule=style(tones.rule),
        bar=on(tones.accent, tones.track),
        bar_ends=style(tones.background),
        heading=style(f"bold {accent}"),
        inline_code=style(tones.code),
        link=style(f"underline {tones.link}"),
        quote=style(f"italic {muted}"),
        added=on(tones.on_added, tones.added),
        removed=on(tones.on_removed, tones.removed),
        added_word=on(tones.on_added_word, tones.added_word, "bold"),
        removed_word=on(tones.on_removed_word, tones.removed_word, "bold"),
        line_number=style(muted),
        cursor=style(f"bold {accent}"),
        selection=on(tones.on_selection, tones.selection),
        match=on(tones.on_match, tones.match),
        match_current=on(tones.on_match, tones.match_current, "bold underline"),
        tokens=CodeColours(
            keyword=style(tones.keyword),
            name=style(tones.type),
            function=style(tones.function),
            string=style(tones.string),
            number=style(tones.number),
            comment=style(f"italic {muted}"),
            operator=Style(),
            error=style(tones.error),
        ),
    )


@lru_cache(maxsize=64)
def on_band(palette: Palette, band: Style) -> Palette:
    """Palette for the content of a user message."""
    return replace(
        palette,
        text=palette.text + band,
        dim=palette.dim + band,
        accent=palette.accent + band,
        user=palette.user + band,
        user_mark=palette.user_mark + band,
    )


TERMINAL = Palette(
    name="terminal",
    dim=style("dim"),
    accent=style("cyan"),
    success=style("green"),
    warning=style("yellow"),
    error=style("red"),
    user_mark=style("bold cyan"),
    reasoning=style("italic dim"),
    rule=style("dim"),
    bar=style("cyan"),
    bar_ends=style("dim"),
    heading=style("bold cyan"),
    inline_code=style("magenta"),
    link=style("underline cyan"),
    quote=style("italic dim"),
    added=style("green"),
    removed=style("red"),
    added_word=style("bold underline green"),
    removed_word=style("bold underline red"),
    line_number=style("dim"),
    cursor=style("bold cyan"),
    selection=style("reverse"),
    match=style("reverse"),
    match_current=style("bold reverse underline"),
    tokens=CodeColours(
        keyword=style("magenta"),
        name=style("cyan"),
        function=style("blue"),
        string=style("green"),
        number=style("yellow"),
        comment=style("italic dim"),
        operator=Style(),
        error=style("red"),
    ),
)
"""The terminal's own 16 colours on its own background, for terminals with no more; colour is never the only
indicator."""

DARK = palette_of(schemes.DARK)
LIGHT = palette_of(schemes.LIGHT)
