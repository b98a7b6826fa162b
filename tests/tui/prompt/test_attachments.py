"""Images that are pasted or dropped as paths."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import events

from swecli.core.images import MAX_BYTES
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.core.protocol.messages import ImagePart
from swecli.tui.prompt.attachments import Attachments, image_paths
from tests.tui.support import Session, running

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
DONE = (TurnEnded("done"),)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "a shot.png"
    path.write_bytes(PNG)
    return path


def test_the_ways_in_which_terminals_type_a_dropped_file(image: Path) -> None:
    other = image.with_name("two.JPG")
    other.write_bytes(b"x")
    escaped = str(image).replace(" ", "\\ ")
    for text in (str(image), f"'{image}'", f'"{image}" ', escaped, f"file://{str(image).replace(' ', '%20')}\n"):
        assert image_paths(text) == [image], text
    assert image_paths(f"{escaped} {other}") == [image, other]
    assert image_paths(f"{image}\n{other}\n") == [image, other]


def test_everything_else_is_text(image: Path) -> None:
    folder = image.with_name("folder.png")
    folder.mkdir()
    for text in (
        "",
        "words",
        f"look at {image}",
        str(folder),
        f"{image}x",
        "gone.png",
        "'open.png",
        "\0.png",
        "file://other.example/a.png",
        "~nobody-here/a.png",
        "x" * 9_000 + ".png",
    ):
        assert image_paths(text) == [], text[:40]


def test_no_images_and_large_ones_are_refused_with_a_sentence(tmp_path: Path) -> None:
    for content, words in ((b"text", "is not a PNG"), (PNG + bytes(MAX_BYTES), "was not attached: ")):
        path = tmp_path / "x.png"
        path.write_bytes(content)
        label, refusal = Attachments().take(str(path))
        assert label == ""
        assert words in refusal


async def test_a_dropped_image_goes_with_the_message(image: Path) -> None:
    async with running(DONE) as it:
        await it.type("what is ")
        it.editor.post_message(events.Paste(str(image)))
        await it.until(lambda: it.text == "what is [Image #1: a shot.png, 108 B, ~1.6K tokens] ")
        it.editor.post_message(events.Paste(str(image)))
        await it.until(lambda: "#2" in it.text)
        await it.press("backspace", "backspace")
        await it.until(lambda: "#2" not in it.text)
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit))
        (sent,) = it.session.sent(Submit)
        assert sent.images == (ImagePart("image/png", base64.b64encode(PNG).decode(), "a shot.png"),)


async def test_what_is_typed_behind_a_large_image_follows_it(tmp_path: Path) -> None:
    """Scaling it down takes a while, in which the screen goes on and Enter must not send the message without it."""
    path = tmp_path / "large.png"
    path.write_bytes(PNG + bytes(400_000))
    async with running(DONE) as it:
        await it.type("what is ")
        it.editor.post_message(events.Paste(str(path)))
        await it.press("i", "t", "enter")
        await it.until(lambda: it.session.sent(Submit))
        (sent,) = it.session.sent(Submit)
        assert sent.text.startswith("what is [Image #1: large.png, 400 KB")
        assert sent.text.endswith("] it")
        assert len(sent.images) == 1


async def test_what_is_dropped_on_a_window_in_the_background_is_kept(image: Path) -> None:
    async with running(DONE) as it:
        it.app.post_message(events.AppBlur())
        await it.until(lambda: it.app.focused is None)
        it.app.post_message(events.Paste(str(image)))
        await it.until(lambda: "[Image #1" in it.text)
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit))


async def test_a_model_that_sees_nothing_gets_the_path_as_text(image: Path) -> None:
    session = Session()
    assert session.view.model is not None
    session.view.model = replace(session.view.model, images=False)
    async with running(session=session) as it:
        it.editor.post_message(events.Paste(str(image)))
        await it.until(lambda: it.text == str(image))
        await it.shows("does not accept images")


async def test_a_name_with_control_characters_reaches_no_screen(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m]b.png"
    path.write_bytes(PNG)
    label, refusal = Attachments().take(f"'{path}'")
    assert refusal == ""
    assert "\x1b" not in label
    assert label.count("]") == 1
