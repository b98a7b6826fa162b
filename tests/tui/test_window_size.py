"""The window's size on its way to the app."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest
from textual import events
from textual.message import Message

from swecli.tui.terminal import Driver


@pytest.fixture(autouse=True)
def handler_kept() -> Iterator[None]:
    before = signal.getsignal(signal.SIGWINCH)
    yield
    signal.signal(signal.SIGWINCH, before)


class Window(Driver):
    """A driver without a terminal. ``during`` are sizes that the window changes to while a size is being read."""

    def __init__(self, *during: tuple[int, int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._in_band_window_resize = False
        self.now = (80, 24)
        self.during = list(during)
        self.told: list[tuple[int, int]] = []
        self.news = asyncio.Event()

    def _get_terminal_size(self) -> tuple[int, int]:
        read = self.now
        if self.during:
            self.now = self.during.pop(0)
            signal.raise_signal(signal.SIGWINCH)
        return read

    def send_message(self, message: Message) -> None:
        assert isinstance(message, events.Resize)
        self.told.append((message.size.width, message.size.height))
        self.news.set()

    async def tells(self, count: int) -> None:
        """Wait until so many sizes have been told."""
        while len(self.told) < count:
            self.news.clear()
            await self.news.wait()


async def test_a_change_while_the_size_is_read_is_told_last() -> None:
    window = Window((300, 2), (1, 1), (120, 40))
    window.follow_size()
    await window.tells(4)
    assert window.told == [(80, 24), (300, 2), (1, 1), (120, 40)]


async def test_every_signal_has_the_size_read_again() -> None:
    window = Window()
    window.follow_size()
    window.now = (7, 7)
    signal.raise_signal(signal.SIGWINCH)
    await window.tells(2)
    assert window.told[-1] == (7, 7)


async def test_a_terminal_that_reports_its_size_itself_is_not_asked() -> None:
    window = Window()
    window.follow_size()
    await window.tells(1)
    window._in_band_window_resize = True  # pyright: ignore[reportPrivateUsage] - what the terminal's answer sets
    window.now = (7, 7)
    signal.raise_signal(signal.SIGWINCH)
    for _ in range(10):  # passes of the loop; the signal takes two
        await asyncio.sleep(0)
    assert window.told == [(80, 24)]


async def test_nothing_is_left_that_tells_a_closed_loop_of_signals() -> None:
    window = Window()
    window.follow_size()
    window.leave_size()
    assert signal.set_wakeup_fd(-1) == -1
