from __future__ import annotations

import pytest

from tests.tui.frames import FRAMES


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is drawn when it comes: what a panel has drawn decides which keys count."""
    FRAMES.watch(monkeypatch, every=True)
