"""The report of a fleet in a real browser. Run by ``make test-interop`` where a Chromium is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.fleet.ledger import Ledger
from swecli.fleet.link import CheckRun, Ended
from swecli.fleet.report import report_page
from swecli.fleet.tasks import Task
from tests.support.browser import Browser

PROGRAM = os.environ.get("SWECLI_BROWSER", "")
HOSTILE = "<img src=http://127.0.0.1:1/x onerror=alert(1)></script><script>alert(2)</script>\u202e\x1b[31m"

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not PROGRAM, reason="needs a Chromium: make test-interop")]


def run_of(folder: Path, shift: int) -> Path:
    ledger = Ledger(folder, resume=False)
    names = [*(f"task-{number}" for number in range(40)), "<b>bold</b>"]
    ledger.merge([Task(name, "/r", "p") for name in names])
    for number, name in enumerate(names):
        taken = ledger.next(0.0)
        assert taken is not None
        passed = (number + shift) % 5 != 0
        status = "broken" if number == 7 else "passed" if passed else "failed"
        ended = Ended(
            status,
            "" if passed else "check",
            "" if passed else HOSTILE if name == "<b>bold</b>" else "the check ended with status 1",
            patch=f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+{HOSTILE if number == 40 else number}\n".encode(),
            check=CheckRun(0 if passed else 1, "1 failed\n" + HOSTILE, 1.5),
            steps=number % 9 + 1,
            tokens_in=1_000 * (number + 1),
            tokens_out=100,
            cost=f"0.{number:02}",
            seconds={"clone": 0.2, "agent": 3.0 + number, "check": 1.5},
            answer=HOSTILE,
        )
        ledger.finish(taken[0], 1, ended, None)
    ledger.close()
    return folder


@pytest.mark.parametrize("width", [390, 1280])
def test_it_renders_sorts_and_filters_without_a_request_or_a_complaint(tmp_path: Path, width: int) -> None:
    page = tmp_path / "report.html"
    folders = [run_of(tmp_path / "first", 0), run_of(tmp_path / "second", 1)]
    page.write_text(report_page(folders), encoding="utf-8")
    with Browser(PROGRAM) as browser:
        browser.size(width, 900, mobile=width < 500)
        browser.open(page)
        assert browser.value("document.querySelectorAll('tbody').length") == 41
        assert browser.value("document.querySelectorAll('figure svg').length") == 4
        assert "McNemar" in browser.value("document.body.textContent")
        first = "document.querySelector('tbody b').textContent"
        assert browser.value(first) == "task-0"
        browser.click("th:nth-child(3) button")
        browser.click("th:nth-child(3) button")
        assert browser.value(first) == "<b>bold</b>"  # the longest first
        browser.click("#filter")
        browser.type("task-11")
        assert browser.value("document.getElementById('count').textContent") == "1 of 41"
        assert browser.value("[...document.querySelectorAll('tbody')].filter((one) => !one.hidden).length") == 1
        assert browser.value("document.images.length") == 0
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert [address for address in browser.requests if not address.startswith(("file:", "data:"))] == []
        assert browser.trouble == []
        if place := os.environ.get("SWECLI_PICTURE"):
            browser.value("document.getElementById('filter').value = ''; scrollTo(0, 0)")
            Path(place).with_name(f"report-{width}.png").write_bytes(browser.picture("png"))
