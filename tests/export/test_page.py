"""The HTML page holds nothing that acts, fetches or hides, whatever is said in the session."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import swecli.export
from swecli.core.llm.secrets import Masker
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.events import (
    Event,
    ItemCompleted,
    PermissionRequested,
    PermissionResolved,
    TurnEnded,
)
from swecli.core.protocol.messages import ImagePart, TextPart
from swecli.export.page import IMAGE_BYTES, page_of
from swecli.export.rendering import readable
from swecli.export.transcript import transcript_of
from tests.export.support import HOSTILE, KEY, PNG, call, in_order, result, said, sample, user

ALLOWED = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "div",
        "input",
        "output",
        "button",
        "main",
        "dl",
        "dt",
        "dd",
        "figure",
        "figcaption",
        "svg",
        "a",
        "rect",
        "line",
        "section",
        "details",
        "summary",
        "span",
        "pre",
        "p",
        "em",
        "strong",
        "code",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "ol",
        "li",
        "blockquote",
        "s",
        "hr",
        "br",
        "img",
        "footer",
        "script",
    ]
)
VOID = frozenset(("meta", "input", "img", "br", "hr", "rect", "line"))


class Reader(HTMLParser):
    """Tags with their attributes, the text of style and script, and whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.raw: dict[str, str] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1] in ("style", "script"):
            self.raw[self.inside[-1]] = data
        else:
            self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.inside == []
    return reader


def page(events: list[Event]) -> str:
    return readable(events, "html", Masker().cover)


def test_hostile_text_makes_no_tag_attribute_or_invisible_character() -> None:
    text = page(sample())
    reader = read(text)
    assert {tag for tag, _ in reader.tags} <= ALLOWED
    assert [tag for tag, _ in reader.tags].count("script") == 1
    names = {name for _, attributes in reader.tags for name in attributes}
    assert not any(name.startswith("on") or name in ("style", "srcset", "background") for name in names)
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text) is None
    assert "⟨U+202E⟩" in reader.text
    assert "⟨U+2028⟩" in reader.text
    assert "</script><script>alert(1)" in reader.text  # it is there, as text
    text.encode()


def test_nothing_is_fetched_and_only_the_own_style_and_script_run() -> None:
    text = page(sample())
    reader = read(text)
    policy = next(a["content"] or "" for t, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(reader.raw[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    sources = [attributes["src"] or "" for _, attributes in reader.tags if "src" in attributes]
    assert sources == [f"data:image/png;base64,{PNG}"]
    links = {attributes["href"] for _, attributes in reader.tags if "href" in attributes}
    assert links == {"#t1", "#t2", "http://127.0.0.1:1/p.png"}  # a picture of the text is a link, to be followed or not
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|innerHTML", reader.raw["style"] + reader.raw["script"])


def test_what_was_done_is_told() -> None:
    reader = read(page(sample()))
    classes = [attributes.get("class") or "" for _, attributes in reader.tags]
    assert classes.count("del") == 1
    assert classes.count("add") == 1
    assert sum("tool" in name.split() for name in classes) == 2
    assert [name for name in classes if name in ("used", "compacted")] == ["used", "used", "used", "compacted", "used"]
    assert "right" in classes  # a column of a table, without a style
    for words in ("Fix add.", "I think.", "always allowed", "+1 -1", "exit 1", "Context compacted", "you pressed Esc"):
        assert words in reader.text
    assert "Turn 1, request 2: 4,000 tokens (40%), 1,000 from the cache" in reader.text


def test_keys_are_covered_in_all_that_is_read() -> None:
    for wanted in ("html", "markdown"):
        text = readable(sample(), wanted, Masker().cover)  # pyright: ignore[reportArgumentType]
        assert KEY not in text
        assert "The key is *" in text.replace("\\", "")


def test_images_that_are_too_large_or_none_are_named() -> None:
    large = ImagePart("image/png", PNG + "A" * (IMAGE_BYTES * 4 // 3), "large.png")
    fake = ImagePart("image/png", base64.b64encode(b"<svg onload=alert(1)>").decode(), "fake.png")
    drawn = ImagePart("image/svg+xml", PNG, "drawn.svg")
    broken = ImagePart('image/png" onerror="x', '"><script>', "broken")
    reader = read(page(in_order([*user("u1", TextPart("look"), large, fake, drawn, broken), TurnEnded("done")])))
    assert not any(tag == "img" for tag, _ in reader.tags)
    for name in ("large.png", "fake.png", "drawn.svg", "broken"):
        assert f"Image {name}" in reader.text


def test_a_session_without_anything_is_a_page_too() -> None:
    reader = read(page_of(transcript_of([])))
    assert "Session" in reader.text
    assert "svg" not in [tag for tag, _ in reader.tags]


def test_a_very_long_answer_is_shown_as_written() -> None:
    text = page(in_order([*user("u1", TextPart("go")), *said("a2", "> " * 150_000), TurnEnded("done")]))
    assert len(text) < 700_000
    assert HOSTILE not in text


def test_the_tools_of_a_narrow_page_wrap() -> None:
    css = (Path(swecli.export.__file__ or "").parent / "page.css").read_text()
    (tools,) = [line for line in css.splitlines() if line.startswith(".tools {")]
    assert "flex-wrap: wrap" in tools


def test_calls_are_in_the_order_asked_edits_unfolded_and_a_refusal_said_once() -> None:
    edit = ItemCompleted("t1", "ok", (result("t1", "edit_file", "done"),), blocks=(DiffBlock("a.py", "1\n", "2\n"),))
    other = ItemCompleted("t2", "rejected", (result("t2", "run_command", "no"),), detail="rejected: use make")
    page = page_of(
        transcript_of(
            in_order(
                [
                    *user("u1", TextPart("go")),
                    *call("t1", "edit_file", "{}", "a.py"),
                    *call("t2", "run_command", "{}", "ls"),
                    PermissionRequested("p", "t2", "run_command", "ls", (), "It asks.", "hash"),
                    PermissionResolved("p", "reject", "user", "use make"),
                    other,
                    edit,
                ]
            )
        )
    )
    assert page.index("a.py") < page.index("use make")
    assert page.count("rejected") == 1
    first, second = re.findall(r'<details class="entry tool[^>]*>', page)
    assert first.endswith(" open>")
    assert not second.endswith(" open>")
