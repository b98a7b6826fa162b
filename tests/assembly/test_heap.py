"""Large blocks of memory go back to the system."""

from __future__ import annotations

import platform
import sys

import pytest

from swecli.assembly.heap import give_back_free_blocks, give_back_large_blocks


def test_it_is_set_where_there_is_glibc_and_left_alone_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        assert give_back_large_blocks()
        assert give_back_free_blocks()
    monkeypatch.setattr(sys, "platform", "win32")
    assert not give_back_large_blocks()
    assert not give_back_free_blocks()
