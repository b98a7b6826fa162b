"""The interface in a real browser. Run by ``make test-interop`` where a Chromium is installed."""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.browser import Browser
from tests.support.loopback import LoopbackServer
from tests.support.program import Program
from tests.support.waiting import PATIENCE

PROGRAM = os.environ.get("SWECLI_BROWSER", "")

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not PROGRAM, reason="needs a Chromium: make test-interop")]

SCRIPT = """
[[step]]
call = [{ tool = "run_command", arguments = { command = "touch made.txt" } }]
[[step]]
text = "It is made."
[[step]]
text = "Second answer begins and goes on while the page is loaded again, until this: the end."
delay = 0.15
"""
HEARD = """
window.heard = [];
const Socket = window.WebSocket;
window.WebSocket = function (url) {
  const socket = new Socket(url);
  socket.addEventListener("message", (event) => {
    if (typeof event.data !== "string") window.heard.push(btoa(String.fromCharCode(...new Uint8Array(event.data))));
  });
  window.socket = socket;
  return socket;
};
"""
"""Keeps what the page's terminal gets, which draws on a canvas."""


class Page:
    """One page of the interface in a browser."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=HEARD)

    def go(self, address: str) -> None:
        self.browser.ask("Page.navigate", url=address)

    @property
    def size(self) -> tuple[int, int]:
        url = self.browser.value("window.socket ? window.socket.url : ''")
        found = re.search(r"width=(\d+)&height=(\d+)", url)
        return (int(found[1]), int(found[2])) if found else (80, 24)

    def text(self) -> str:
        columns, rows = self.size
        screen = pyte.Screen(max(columns, 200), max(rows, 60))
        stream = pyte.ByteStream(screen)
        for piece in self.browser.value("window.heard || []"):
            stream.feed(base64.b64decode(piece))
        return "\n".join(line.rstrip() for line in screen.display)

    def until(self, condition: Callable[[], Any], about: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"{about}\n{self.text()}\n{self.browser.trouble}"

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.text(), f"{text!r} never came")

    def enter(self, text: str) -> None:
        self.browser.ask("Input.insertText", text=text)
        self.shows(text)
        self.key("Enter", 13)

    def key(self, key: str, code: int) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser(PROGRAM) as running:
        yield running


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_page_types_approves_resizes_and_survives_a_reload(
    browser: Browser, tmp_path: Path, width: int, height: int
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with LoopbackServer(parse_script(SCRIPT)) as provider:
        program = Program(folder, tmp_path / "home", provider.environment(), fresh=True)
        process = program.start("web", "-m", "openai/m")
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            address = process.stdout.readline().decode().strip()
            browser.size(width, height, mobile=width < 500)
            page = Page(browser)
            page.go(address)
            page.shows("openai/m" if width > 500 else "m")
            page.shows("›")
            assert "token" not in browser.value("location.href")
            page.enter("make it")
            page.shows("touch made.txt")
            time.sleep(0.4)  # keys within 0.3 s of a panel's appearance are ignored
            browser.ask("Input.insertText", text="y")
            page.shows("It is made.")
            assert (folder / "made.txt").exists()

            browser.ask("Page.reload")
            page.until(lambda: browser.value("(window.heard || []).length > 0"))
            page.shows("It is made.")
            browser.size(width - 60, height - 100, mobile=width < 500)
            page.enter("again")
            page.shows("Second answer")
            browser.ask("Page.reload")  # in mid-answer
            page.until(lambda: browser.value("(window.heard || []).length > 0"))
            page.shows("the end.")
            assert browser.value("document.documentElement.scrollWidth <= innerWidth")
            keys = browser.value("getComputedStyle(document.getElementById('keys')).display")
            assert keys == ("flex" if browser.value("matchMedia('(pointer: coarse)').matches") else "none")
            if picture := os.environ.get("SWECLI_PICTURES"):
                Path(picture, f"web-{width}.webp").write_bytes(browser.picture())
            elsewhere = [
                url for url in browser.requests if not url.startswith(("http://127.0.0.1", "data:", "ws://127"))
            ]
            assert elsewhere == []
            assert [one for one in browser.trouble if "error" in one.lower() and "favicon" not in one] == []

            with Browser(PROGRAM) as other:
                stranger = Page(other)
                stranger.go(address)
                stranger.until(lambda: "belongs to another" in (other.value("document.body.innerText") or ""))
            opened = "(document.querySelector('#notice p') || {}).textContent || ''"
            browser.open_another(browser.value("location.href"))  # a second page takes the session
            page.until(lambda: "open on another page" in browser.value(opened), "the first page says so")
            browser.click("#notice button")
            page.until(lambda: browser.value("(window.heard || []).length > 0"))
            page.shows("the end.")
        finally:
            process.terminate()
            process.communicate()
        if process.returncode not in (0, 143):
            raise AssertionError(json.dumps(process.returncode))
