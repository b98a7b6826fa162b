"""The HTML export in a real browser. Run by ``make test-interop`` where a Chromium is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from swecli.core.llm.secrets import Masker
from swecli.export.rendering import readable
from tests.export.support import HOSTILE, sample
from tests.support.browser import Browser

PROGRAM = os.environ.get("SWECLI_BROWSER", "")

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not PROGRAM, reason="needs a Chromium: make test-interop")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "session.html"
    path.write_text(readable(sample(), "html", Masker().cover), encoding="utf-8")
    return path


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser(PROGRAM) as running:
        yield running


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
@pytest.mark.parametrize("dark", [False, True])
def test_it_renders_searches_and_folds_without_a_request_or_a_complaint(
    browser: Browser, page: Path, width: int, height: int, dark: bool
) -> None:
    browser.size(width, height, dark=dark, mobile=width < 500)
    browser.open(page)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("[...document.images].every((one) => one.complete)")
    assert browser.value("document.querySelectorAll('.chart .used').length") == 4
    background = "getComputedStyle(document.body).backgroundColor"
    before = browser.value(background)
    assert (before == "rgb(255, 255, 255)") is not dark
    browser.click("#theme")
    assert browser.value(background) != before
    opened = "document.querySelectorAll('details[open]').length"
    assert browser.value(opened) == 1, "edits are shown unfolded"
    browser.click("details.tool:not([open]) > summary")
    assert browser.value(opened) == 2
    browser.click("#fold")
    assert browser.value(opened) == browser.value("document.querySelectorAll('details').length")
    assert browser.value("document.documentElement.scrollWidth") <= width
    browser.click("#fold")
    assert browser.value(opened) == 0
    browser.click("#query")
    browser.type("1 FAILED")
    assert browser.value("document.getElementById('hits').textContent") == "1 found"
    browser.press("Enter")
    assert browser.value("document.getElementById('hits').textContent") == "1 of 1"
    assert browser.value("document.querySelector('details.hit').open")
    rectangle = "[...CSS.highlights.get('found')][0].getBoundingClientRect()"
    assert browser.value(f"{rectangle}.top > 0 && {rectangle}.bottom < innerHeight")
    assert browser.value("[...CSS.highlights.get('found')].map(String).join()") == "1 failed"
    assert browser.requests == [page.as_uri()]
    assert browser.trouble == []


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, page: Path) -> None:
    browser.size(1280, 800)
    browser.open(page)
    shown = browser.value("document.querySelector('.user:last-of-type, #t2 .user').textContent")
    assert HOSTILE[:40] in shown
    assert browser.value("document.scripts.length") == 1
    assert browser.value(
        "[...document.querySelectorAll('*')].every((e) => ![...e.attributes].some((a) => /^on/.test(a.name)))"
    )
    assert browser.requests == [page.as_uri()]
    assert browser.trouble == []
