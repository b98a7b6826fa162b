"""Signals that come before there is anything to stop in order."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from swecli.exit_codes import ExitCode
from swecli.stopping import Stop, Stopped, Watch, raising
from tests.support.waiting import PATIENCE, wait_until

MODULE = """
import signal
signal.raise_signal(signal.SIGTERM)
complete = True
"""


def test_a_signal_during_an_import_stops_once_the_module_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half imported, asyncio could not be imported again by what reports the end."""
    (tmp_path / "stops_in_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Stopped) as stopped:
        import_and_wait()
    assert sys.modules.pop("stops_in_import").complete
    assert stopped.value.status == ExitCode.TERMINATED


def import_and_wait() -> None:
    with raising():
        importlib.import_module("stops_in_import")
        threading.Event().wait(PATIENCE)


def test_a_signal_outside_imports_stops_at_once() -> None:
    with pytest.raises(Stopped) as stopped:
        interrupt()
    assert stopped.value.status == ExitCode.INTERRUPTED


def interrupt() -> None:
    with raising():
        signal.raise_signal(signal.SIGINT)
        pytest.fail("still running")


def test_a_signal_inside_a_lock_of_the_threads_waits_for_nothing() -> None:
    """What starts a thread takes this lock: a handler that did would wait for the code that it interrupted."""
    stop = Stop((signal.SIGTERM,))
    with stop.handled(), threading._active_limbo_lock:  # type: ignore[attr-defined] # pyright: ignore
        signal.raise_signal(signal.SIGTERM)
    assert stop.code == ExitCode.TERMINATED


def test_a_watch_acts_on_each_signal_and_on_the_earliest_time() -> None:
    numbers: list[int] = []
    late = threading.Event()

    def act(number: int) -> float | None:
        numbers.append(number)
        return time.monotonic() if number == signal.SIGTERM else None

    with Watch(act, late.set) as watch:
        watch.note(signal.SIGINT)
        watch.note(signal.SIGTERM)
        assert late.wait(PATIENCE)
    assert numbers == [signal.SIGINT, signal.SIGTERM]
    watch.note(signal.SIGINT)  # after its end: nothing


def test_a_watch_without_signals_ends_with_its_block() -> None:
    def watching() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "swecli-signals"]

    late = threading.Event()
    wait_until(lambda: not watching())  # those of earlier tests
    with Watch(lambda number: None, late.set):
        assert len(watching()) == 1
    wait_until(lambda: not watching())
    assert not late.is_set()
