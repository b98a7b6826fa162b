"""Inline markdown: the tokens of one paragraph become lines of styled text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.style import Style

from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Styled

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_INLINE: Final = 20_000
"""Characters of one paragraph beyond which its text is shown as it was written."""


def inline_lines(token: Token, palette: Palette, base: Style) -> list[Styled]:
    """The lines of an inline token. Line breaks of the source are kept; links are followed by their address."""
    if len(token.content) > MAX_INLINE:
        return [Styled(SafeText(line), base) for line in sanitise(token.content).split("\n")]
    return _Lines(palette, base).feed(token.children or [])


def _plain(tokens: Sequence[Token]) -> str:
    """The text of an image, of which only words count."""
    parts = (_plain(token.children or []) if token.type == "image" else token.content for token in tokens)
    return "".join(
        " " if token.type in ("softbreak", "hardbreak") else part for token, part in zip(tokens, parts, strict=True)
    )


class _Lines:
    def __init__(self, palette: Palette, base: Style) -> None:
        self.lines = [Styled()]
        self._palette = palette
        self._styles = [base]
        self._links: list[tuple[str, list[str]]] = []
        self._opened = {
            "strong_open": palette.bold,
            "em_open": palette.emphasis,
            "s_open": palette.strike,
            "link_open": palette.link,
        }

    def feed(self, tokens: Sequence[Token]) -> list[Styled]:
        for token in tokens:
            self._token(token)
        return self.lines

    def _token(self, token: Token) -> None:
        kind = token.type
        if kind in self._opened:
            self._styles.append(self._styles[-1] + self._opened[kind])
            if kind == "link_open":
                self._links.append((str(token.attrs.get("href", "")), []))
        elif kind.endswith("_close"):
            if len(self._styles) > 1:
                self._styles.pop()
            if kind == "link_close" and self._links:
                self._address(*self._links.pop())
        elif kind in ("softbreak", "hardbreak"):
            self.lines.append(Styled())
        elif kind == "code_inline":
            self._add(token.content, self._styles[-1] + self._palette.inline_code)
        elif kind == "image":
            alt = _plain(token.children or []) or "image"
            self._add(f"[{alt}]({token.attrs.get('src', '')})", self._styles[-1] + self._palette.link)
        else:
            self._add(token.content, self._styles[-1])

    def _address(self, href: str, text: list[str]) -> None:
        shown = "".join(text)
        if href and href not in (shown, "mailto:" + shown):
            self._add(f" ({href})", self._styles[-1] + self._palette.dim)

    def _add(self, text: str, style: Style) -> None:
        if self._links:
            self._links[-1][1].append(text)
        for number, line in enumerate(sanitise(text).split("\n")):
            if number:
                self.lines.append(Styled())
            self.lines[-1].add(SafeText(line), style)
