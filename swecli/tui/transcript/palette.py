"""Styles of everything that the transcript draws, as one value that a theme can replace."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.style import Style


def style(definition: str) -> Style:
    """A Rich style from its definition, for example ``bold #ff0000``."""
    return Style.parse(definition)


@dataclass(frozen=True, slots=True)
class CodeColours:
    """Colours of program text by kind of token."""

    keyword: Style
    name: Style
    function: Style
    string: Style
    number: Style
    comment: Style
    operator: Style
    error: Style


@dataclass(frozen=True, slots=True)
class Palette:
    """All styles. They are laid over the widget's own colours, so none of them needs a background.

    A palette is part of the key of every cached line: make one value per theme, not one per frame.
    """

    name: str
    text: Style
    dim: Style
    strong: Style
    accent: Style
    success: Style
    warning: Style
    error: Style
    user: Style
    user_mark: Style
    reasoning: Style
    verb: Style
    target: Style
    rule: Style
    heading: Style
    heading_small: Style
    emphasis: Style
    bold: Style
    strike: Style
    inline_code: Style
    link: Style
    quote: Style
    code: Style
    table_head: Style
    added: Style
    removed: Style
    added_word: Style
    removed_word: Style
    line_number: Style
    hunk: Style
    cursor: Style
    match: Style
    match_current: Style
    tokens: CodeColours
    code_background: Style = field(default_factory=Style)
    dark: bool = True


def _palette(name: str, *, dark: bool, colours: dict[str, str]) -> Palette:
    def c(key: str, prefix: str = "") -> Style:
        return style(f"{prefix} {colours[key]}".strip())

    return Palette(
        name=name,
        dark=dark,
        text=Style(),
        dim=c("dim"),
        strong=style("bold"),
        accent=c("accent"),
        success=c("green"),
        warning=c("yellow"),
        error=c("red"),
        user=style("bold"),
        user_mark=c("accent", "bold"),
        reasoning=c("dim", "italic"),
        verb=style("bold"),
        target=Style(),
        rule=c("faint"),
        heading=c("accent", "bold"),
        heading_small=style("bold"),
        emphasis=style("italic"),
        bold=style("bold"),
        strike=style("strike"),
        inline_code=c("code"),
        link=c("link", "underline"),
        quote=c("dim", "italic"),
        code=Style(),
        table_head=style("bold"),
        added=c("added"),
        removed=c("removed"),
        added_word=c("added_word", "bold"),
        removed_word=c("removed_word", "bold"),
        line_number=c("faint"),
        hunk=c("accent"),
        cursor=c("accent", "bold"),
        match=c("match"),
        match_current=c("match_current", "bold"),
        tokens=CodeColours(
            keyword=c("keyword"),
            name=c("type"),
            function=c("function"),
            string=c("string"),
            number=c("number"),
            comment=c("dim", "italic"),
            operator=Style(),
            error=c("red"),
        ),
    )


DARK = _palette(
    "dark",
    dark=True,
    colours={
        "dim": "#8b919e",
        "faint": "#636b78",
        "accent": "#7aa2f7",
        "green": "#8fc66b",
        "yellow": "#e0af68",
        "red": "#f7768e",
        "code": "#c9a4f0",
        "link": "#7dcfff",
        "added": "#b9e3a5 on #1d2f21",
        "removed": "#f2b0b8 on #381f25",
        "added_word": "#dcf5cf on #2f5a36",
        "removed_word": "#ffd9de on #6b2a36",
        "match": "#1a1b26 on #e0af68",
        "match_current": "#1a1b26 on #ff9e64",
        "keyword": "#bb9af7",
        "type": "#7dcfff",
        "function": "#7aa2f7",
        "string": "#9ece6a",
        "number": "#ff9e64",
    },
)

LIGHT = _palette(
    "light",
    dark=False,
    colours={
        "dim": "#5f6672",
        "faint": "#8a919c",
        "accent": "#2457c5",
        "green": "#2f7d32",
        "yellow": "#8a5a00",
        "red": "#b3261e",
        "code": "#6f3fb0",
        "link": "#0b6a8f",
        "added": "#12491a on #e2f5e1",
        "removed": "#6e1414 on #fde7e7",
        "added_word": "#0b3a12 on #b5e3b5",
        "removed_word": "#560d0d on #f7bcbc",
        "match": "#1a1b26 on #ffd58a",
        "match_current": "#1a1b26 on #ffab5e",
        "keyword": "#7b35b5",
        "type": "#0b6a8f",
        "function": "#2457c5",
        "string": "#3f7017",
        "number": "#a8480b",
    },
)
