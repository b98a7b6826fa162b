"""Every example of the CommonMark specification, by its visible text.

What a browser would show of an example's HTML is compared, word by word, with what the terminal shows. `DIFFERENT`
lists every example that differs, with its reason:

- link reference definitions are text: a block never changes by what comes after it, so that a streamed answer stays as
  it was drawn;
- HTML is shown as it was written: it is text of the model, never markup of the screen;
- U+FFFD, which stands for what is no character, is shown by its number like all that has no glyph;
- a link is followed by its address, an image is its text and address: terminals show no other sign of them.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from swecli.tui.transcript.markdown import MarkdownStream, markdown_rows
from swecli.tui.transcript.palette import DARK

EXAMPLES = Path(__file__).parents[2] / "data" / "commonmark" / "examples.jsonl"
DEFINITION = re.compile(r"^[\s>*+-]*\[(?:[^\]\\]|\\.|\n)*\]:", re.MULTILINE)
WIDTH = 500

DIFFERENT: dict[str, tuple[int, ...]] = {
    "definition": (
        23,
        33,
        *range(192, 197),
        198,
        *range(200, 209),
        210,
        *range(214, 219),
        317,
        *range(527, 546),
        *range(549, 551),
        *range(553, 572),
        573,
        *range(576, 578),
        *range(582, 590),
        *range(591, 594),
    ),
    "html": (
        21,
        31,
        *range(148, 192),
        *range(308, 310),
        344,
        *range(475, 478),
        491,
        494,
        524,
        *range(613, 618),
        623,
        *range(625, 632),
        *range(642, 644),
    ),
}
"""Numbers of the examples whose visible text is another one on purpose."""


@dataclass(frozen=True)
class Example:
    number: int
    source: str
    html: str

    @property
    def about(self) -> str:
        """The deliberate difference that this example has something of; empty for none."""
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
    found = [json.loads(line) for line in EXAMPLES.read_text("utf-8").splitlines()]
    return [Example(each["number"], each["markdown"], each["html"]) for each in found]


def test_every_example_has_the_visible_text_of_its_html_or_is_listed() -> None:
    found = examples()
    assert len(found) == 652
    different = {example.number: example.about for example in found if visible(example.html) != shown(example.source)}
    assert different == {number: reason for reason, numbers in DIFFERENT.items() for number in numbers}


def test_examples_that_differ_lose_nothing() -> None:
    listed = {number for numbers in DIFFERENT.values() for number in numbers}
    for example in examples():
        if example.number in listed:
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
