"""What holds for all tests."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import PYC_TAIL
from hypothesis import HealthCheck, settings
from xdist.remote import WorkerInteractor

from swecli.core.context_management import counter
from tests.support import usual_ports
from tests.support.thorough import examples

usual_ports.close()
# Where the environment forbids it, each worker compiles all tests and the program anew: two thirds of the collection.
sys.dont_write_bytecode = False
# A shell starts a job in the background with Ctrl+C ignored, and every program that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).parents[1]
# How long an example takes, and how long it takes to make some, depends on what else the machine does.
settings.register_profile(
    "busy machine",
    settings(),
    deadline=None,
    max_examples=examples(50, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy machine")


@contextlib.contextmanager
def _one_worker_at_a_time() -> Iterator[None]:
    with open(__file__, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """One worker compiles a file of tests and what it imports, the others read what that one has written."""
    path = collector.path
    if not isinstance(collector, pytest.Module) or "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    if (path.parent / "__pycache__" / (path.stem + PYC_TAIL)).exists():
        return (yield)
    with _one_worker_at_a_time():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems() -> Generator[None, None, None]:
    """The same for Hypothesis, which looks for constants in all files and keeps those of each."""
    if (ROOT / ".hypothesis" / "constants").is_dir() or "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with _one_worker_at_a_time():
        return (yield)


def _passed_around(report: Mapping[str, Any]) -> bool:
    """Whether it says that what comes before or after a test passed."""
    return report["when"] != "call" and report["outcome"] == "passed"


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """A worker sends one message for a test that passed, not five: each of them wakes threads on both sides, which took
    two thirds of the time of a short test (2,000 that do nothing: 15.4 s in one worker, and 5.0 so)."""
    option = session.config.option
    if option.durations is not None or option.xmlpath or option.verbose > 0:
        return
    for worker in session.config.pluginmanager.get_plugins():
        if isinstance(worker, WorkerInteractor):
            send = worker.sendevent

            def send_event(name: str, *, _send: Callable[..., None] = send, **content: Any) -> None:
                if not (
                    name in ("logstart", "logfinish") or (name == "testreport" and _passed_around(content["data"]))
                ):
                    _send(name, **content)

            worker.sendevent = send_event  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No search for garbage meanwhile: there is none in what is collected, and little in the syntax trees of modules
    that are compiled, which are many objects (28 s without compiled files, and 20 so)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: a search for garbage need not look at them each time, and is rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each worker removes the folders of its tests at its end, unless one failed. Where each test removes its own, ext4
    without a journal looks at every inode freed within 5 s for each file that another test makes (a tenth of the
    suite's time); and pytest itself removes those of earlier runs in one process, while the others do nothing."""
    yield
    if not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """The program starts with collections off, and a test of the start may end before it enables them."""
    gc.enable()


ESTIMATE = counter._estimate
COUNTING = {"test_o200k", "test_tokens", "test_hybrid_counter"}


class Estimates(dict[tuple[int, int], float]):
    """What texts were estimated at, by length and hash, so that no text is held."""

    def estimate(self, text: str) -> float:
        key = len(text), hash(text)
        if key not in self:
            self[key] = ESTIMATE(text)
        return self[key]


ESTIMATES = Estimates()


@pytest.fixture(autouse=True, scope="module")
def estimated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each session counts the same instructions and tools. They are estimated once, but in the tests of the counting
    itself."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem not in COUNTING:
            patch.setattr(counter, "_estimate", ESTIMATES.estimate)
        yield


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
