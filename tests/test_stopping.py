"""Signals that come before there is anything to stop in order."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from pathlib import Path

import pytest

from swecli.exit_codes import ExitCode
from swecli.stopping import Stopped, raising
from tests.support.waiting import PATIENCE

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
