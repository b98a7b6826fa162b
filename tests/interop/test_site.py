"""The documentation's site in a real browser, desktop and phone, light and dark. Run by ``make test-interop`` where a
Chromium is installed and ``make site`` has built it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.waiting import PATIENCE

PROGRAM = os.environ.get("SWECLI_BROWSER", "")
SITE = Path(__file__).resolve().parents[2] / "build" / "site" / "html"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not PROGRAM, reason="needs a Chromium: make test-interop"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make site"),
]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser(PROGRAM) as running:
        yield running


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the standard error of a test is not its log."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def until(browser: Browser, condition: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not browser.value(condition):
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_fit_have_their_pictures_and_ask_nobody_else(
    browser: Browser, site: str, width: int, height: int, dark: bool
) -> None:
    browser.size(width, height, dark=dark, mobile=width < 500)
    for name in ("index", "providers", "promises", "interface"):
        browser.open(f"{site}/{name}.html")
        assert browser.value("document.documentElement.scrollWidth") <= width
        until(browser, "[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
    scheme = browser.value("document.body.getAttribute('data-md-color-scheme')")
    assert (scheme == "slate") is dark
    assert [address for address in browser.requests if not address.startswith((site, "data:", "blob:"))] == []
    assert browser.trouble == []


def test_search_finds_a_page(browser: Browser, site: str) -> None:
    browser.size(1280, 800)
    browser.open(f"{site}/index.html")
    browser.click(".md-search__button")
    shown = "document.activeElement.shadowRoot"  # the dialog is an element with a tree of its own
    until(browser, f"!!({shown} && {shown}.querySelector('input'))")
    browser.type("bubblewrap")
    until(browser, f"[...{shown}.querySelectorAll('a')].some((one) => one.href.includes('sandbox.html'))")
    assert browser.trouble == []
