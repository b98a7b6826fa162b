"""What holds for all tests."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

import pytest

# Where the environment forbids it, each worker compiles all tests and the program anew: two thirds of the collection.
sys.dont_write_bytecode = False


def skip_lines(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """How many tests were skipped, and why, the most frequent reason first."""
    reasons: Counter[str] = Counter()
    for report in reports:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[text.removeprefix("Skipped: ") or "no reason given"] += 1
    if not reasons:
        return ["0 tests were skipped."]
    return [
        f"{reasons.total()} tests were skipped, so what they show is not known here:",
        *(f"  {count:>4}  {reason}" for reason, count in reasons.most_common()),
    ]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last lines of a run count what was skipped: a green run on a machine that lacks something proves less."""
    terminalreporter.section("skipped")
    for line in skip_lines(terminalreporter.getreports("skipped")):
        terminalreporter.write_line(line)
