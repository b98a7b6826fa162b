"""HTML as text that keeps headings, lists, code and links.

Imported with the first page, because the parser's table of character names takes half a megabyte.
"""

from __future__ import annotations

import time
from contextlib import suppress
from html.parser import HTMLParser
from urllib.parse import urljoin

from swecli.lazy_pattern import lazy_pattern

SECONDS = 5.0
"""Time limit for one page; the text parsed until then is used."""
_LEAST = 0.5
"""Seconds that every page gets, so that its beginning is read."""
_PIECE = 1 << 16
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "select"))
_BLOCKS = frozenset(
    (
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "dd",
            "details",
            "div",
            "dl",
            "dt",
            "fieldset",
            "figure",
            "footer",
        ),
        *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section"),
        *("summary", "table", "tr", "ul"),
    )
)
_BLANKS = lazy_pattern(r"[ \t\r\f\v\n]+")
_LINES = lazy_pattern(r"\n{3,}")


class _TooLong(Exception):
    """The time limit has passed."""


class _Reader(HTMLParser):
    """Stops at ``deadline`` (monotonic seconds): an unclosed construct is searched to the end of the page for its end,
    and a page may begin thousands of them."""

    def __init__(self, base: str, deadline: float) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._deadline = deadline
        self._parts: list[str] = []
        self._skip: list[str] = []
        self._pre = 0
        self._links: list[str] = []
        self._in_title = False
        self.title = ""

    def in_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise _TooLong

    def handle_comment(self, data: str) -> None:
        self.in_time()

    def handle_decl(self, decl: str) -> None:
        self.in_time()

    def handle_pi(self, data: str) -> None:
        self.in_time()

    def unknown_decl(self, data: str) -> None:
        self.in_time()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_time()
        if tag in _SKIPPED:
            self._skip.append(tag)
        if self._skip:
            return
        if tag == "title":
            self._in_title = True
        elif tag == "br":
            self._parts.append("\n")
        elif tag in ("td", "th"):
            self._parts.append(" | ")
        elif tag == "a":
            self._links.append(urljoin_safely(self._base, dict(attrs).get("href") or ""))
        elif tag in _BLOCKS:
            self._parts.append("\n" if tag in ("li", "tr", "dd", "dt") else "\n\n")
            self._pre += tag == "pre"
            if tag == "li":
                self._parts.append("- ")
            elif tag[0] == "h" and tag[1:].isdigit():
                self._parts.append("#" * int(tag[1:]) + " ")
            elif tag == "pre":
                self._parts.append("```\n")

    def handle_endtag(self, tag: str) -> None:
        self.in_time()
        if self._skip:
            while tag in self._skip and self._skip.pop() != tag:
                pass  # what was not closed inside of it ends with it
            return
        if tag == "title":
            self._in_title = False
        elif tag == "a" and self._links:
            link = self._links.pop()
            if link:
                self._parts.append(f" ({link})")
        elif tag in _BLOCKS:
            if tag == "pre" and self._pre:
                self._pre -= 1
                self._parts.append("\n```")
            self._parts.append("\n" if tag in ("li", "tr", "dd", "dt") else "\n\n")

    def handle_data(self, data: str) -> None:
        self.in_time()
        if self._skip:
            return
        if self._in_title:
            self.title = (self.title + data)[:300]
        else:
            self._parts.append(data if self._pre else _BLANKS.sub(" ", data))

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        return _LINES.sub("\n\n", "\n".join(lines)).strip()


def urljoin_safely(base: str, href: str) -> str:
    """The absolute web address of a link; empty if it does not lead to another page."""
    if not href or href.startswith("#"):
        return ""
    try:
        address = urljoin(base, href.strip())
    except ValueError:
        return ""
    return address if address.startswith(("http://", "https://")) and len(address) <= 500 else ""


def page_text(html: str, base: str, seconds: float = SECONDS) -> str:
    """The text of a page, title first. ``base`` is the page's own address."""
    reader = _Reader(base, time.monotonic() + max(seconds, _LEAST))
    # The parser of the standard library raises AssertionError at some marked sections that are cut, such as ``<![;``:
    # the page ends there.
    with suppress(AssertionError, _TooLong):
        for start in range(0, len(html), _PIECE):
            reader.feed(html[start : start + _PIECE])
            reader.in_time()
        reader.close()
    title = _BLANKS.sub(" ", reader.title).strip()
    text = reader.text()
    return f"# {title}\n\n{text}" if title and not text.startswith(f"# {title}") else text
