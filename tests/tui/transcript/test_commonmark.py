"""Every example of the CommonMark specification, by its visible text.

The specification is not part of this repository: `scripts/commonmark_spec.py` fetches it to build/commonmark, and
without it this test is skipped. What a browser would show of an example's HTML is compared, word by word, with what the
terminal shows. Deliberate differences, each with its reason:

- link reference definitions are text: a block never changes by what comes after it, so that a streamed answer stays as
  it was drawn;
- HTML is shown as it was written: it is text of the model, never markup of the screen;
- U+FFFD, which stands for what is no character, is shown by its number like all that has no glyph;
- a link is followed by its address, an image is its text and address: terminals show no other sign of them.
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from swecli.tui.transcript.markdown import markdown_rows
from swecli.tui.transcript.markdown_stream import MarkdownStream
from swecli.tui.transcript.palette import DARK

SPEC = Path(os.environ.get("SWECLI_COMMONMARK_SPEC", Path(__file__).parents[3] / "build" / "commonmark" / "spec.txt"))
EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.MULTILINE | re.DOTALL)
DEFINITION = re.compile(r"^[\s>*+-]*\[(?:[^\]\\]|\\.|\n)*\]:", re.MULTILINE)
WIDTH = 500

pytestmark = pytest.mark.skipif(not SPEC.is_file(), reason="scripts/commonmark_spec.py fetches the specification")


@dataclass(frozen=True)
class Example:
    number: int
    source: str
    html: str

    @property
    def different(self) -> str:
        """The deliberate difference that this example is about; empty for none."""
        if DEFINITION.search(self.source):
            return "definition"
        return "html" if re.search(r"<(?!p>|/p>)[a-zA-Z/!?]", _without_ours(self)) else ""


OURS = (
    r"</?(?:p|em|strong|code|pre|blockquote|ul|ol|li|h[1-6]|hr|br|a|img)\b"
    r"(?: (?:class=\"language-[^\"]*\"|start=\"\d+\"|href=\"[^\"]*\"|title=\"[^\"]*\"|src=\"[^\"]*\"|alt=\"[^\"]*\"))*"
    r" ?/?>"
)


def _without_ours(example: Example) -> str:
    """The HTML without the tags that the renderer of the specification writes; what remains was in the source."""
    text = re.sub(OURS, "", example.html, flags=re.DOTALL)
    tags = re.findall(r"</?[a-z]+[^>]*>", example.source)
    return text + "".join(tag for tag in tags if re.fullmatch(OURS, tag, re.DOTALL) and tag in example.html)


class Visible(HTMLParser):
    """The text of HTML as our rules show it."""

    def __init__(self) -> None:
        super().__init__()
        self.out: list[str] = []
        self._links: list[tuple[str, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a":
            self._links.append((given.get("href") or "", len(self.out)))
        elif tag == "img":
            self.out.append(f"[{given.get('alt') or 'image'}]({given.get('src') or ''})")
        elif tag == "hr":
            self.out.append("\n" + "─" * WIDTH + "\n")
        elif tag in ("p", "li", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "br", "ul", "ol"):
            self.out.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._links:
            href, start = self._links.pop()
            shown = "".join(self.out[start:])
            if href and href not in (shown, "mailto:" + shown):
                self.out.append(f" ({href})")

    def handle_data(self, data: str) -> None:
        self.out.append(data)


def visible(html: str) -> list[str]:
    parser = Visible()
    parser.feed(html)
    return _words("".join(parser.out))


def shown(source: str) -> list[str]:
    return _words("\n".join(row.body for row in markdown_rows(source, WIDTH, DARK)))


def _words(text: str) -> list[str]:
    return re.sub("─+", "─", text).replace("\ufffd", "⟨U+FFFD⟩").split()


def examples() -> list[Example]:
    text = SPEC.read_text("utf-8").replace("→", "\t")
    return [Example(n, *match.groups()) for n, match in enumerate(EXAMPLE.finditer(text), 1)]


def test_every_example_has_the_visible_text_of_its_html() -> None:
    found = examples()
    assert len(found) > 600
    wrong = [
        (example.number, visible(example.html), shown(example.source))
        for example in found
        if not example.different and visible(example.html) != shown(example.source)
    ]
    assert wrong == []


def test_few_examples_differ_on_purpose_and_lose_nothing() -> None:
    found = examples()
    definitions = [example for example in found if example.different == "definition"]
    html = [example for example in found if example.different == "html"]
    assert len(definitions) < 90
    assert len(html) < 90
    for example in (*definitions, *html):
        words = set(re.findall(r"\w{2,}", unquote(" ".join(visible(example.html)))))
        there = set(re.findall(r"\w{2,}", unescape(unquote(" ".join(shown(example.source)) + example.source))))
        assert words <= there | {"image"}, example.number


def test_every_example_streamed_in_random_pieces_equals_the_whole() -> None:
    chance = random.Random(31)
    for example in examples():
        stream = MarkdownStream(60, DARK)
        rest = example.source
        while rest:
            size = chance.randint(1, 9)
            stream.feed(rest[:size])
            rest = rest[size:]
        stream.finish()
        whole = markdown_rows(example.source, 60, DARK)
        assert [row.text for row in stream.rows] == [row.text for row in whole], example.number
