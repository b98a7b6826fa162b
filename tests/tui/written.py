"""What an application without a terminal would write, played on a screen, and Textual's own output for the same frames
on another one."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from textual._compositor import LayoutUpdate
from textual.drivers.headless_driver import HeadlessDriver

from swecli.tui.app import SwecliApp
from swecli.tui.compat import DrawingApp
from tests.support.cell_grid import Grid, differences


class Written:
    """Compares both screens after every frame."""

    def __init__(self, columns: int, rows: int) -> None:
        self.shown, self.wanted = Grid(columns, rows), Grid(columns, rows)
        self.frames: list[str] = []
        """What each frame wrote."""
        self.textual = 0
        """Characters that Textual writes for the same frames."""
        self.compared = 0
        """Frames after which both screens were the same."""
        self.lost = self._drawing = False

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        display, forget = DrawingApp._display, DrawingApp.forget_screen

        def displayed(app: SwecliApp, screen: Any, update: Any) -> None:
            if update is not None:
                self._resize(*screen.outer_size)
                sequences = self._usual(app, update)
                self.textual += len(sequences)
                self.wanted.feed(sequences)
                self.frames.append("")
            self._drawing = True
            display(app, screen, update)
            self._drawing = False
            if isinstance(update, LayoutUpdate):
                self.lost = False
            if not self.lost:
                assert differences(self.shown, self.wanted) == [], repr(self.frames[-1])
                assert self.shown.at_rest
                self.compared += 1

        def written(_: HeadlessDriver, data: str) -> None:
            if self._drawing:  # the title and the like are no part of the screen
                self.frames[-1] += data
                self.shown.feed(data)

        def forgotten(app: SwecliApp) -> None:
            self.lose()
            forget(app)

        monkeypatch.setattr(DrawingApp, "_display", displayed)
        monkeypatch.setattr(DrawingApp, "forget_screen", forgotten)
        monkeypatch.setattr(HeadlessDriver, "is_headless", False)
        monkeypatch.setattr(HeadlessDriver, "write", written)

    @property
    def characters(self) -> int:
        """Characters that the program wrote."""
        return sum(map(len, self.frames))

    def lose(self) -> None:
        """Another program has written over the screen: it is right again after the next whole frame."""
        self.shown, self.lost = Grid(self.shown.columns, self.shown.rows, filled="?"), True

    def _usual(self, app: SwecliApp, update: Any) -> str:
        """What Textual writes. Styles and strips keep what they were in the colours of a test before."""
        lines = update.strips if isinstance(update, LayoutUpdate) else [chops.values() for chops in update.chops]
        for strip in filter(None, chain.from_iterable(lines)):
            strip._render_cache = None
            for _, style, _ in strip:
                if style is not None:
                    style._ansi = None
        return update.render_segments(app.console)

    def _resize(self, columns: int, rows: int) -> None:
        if (columns, rows) != (self.shown.columns, self.shown.rows):
            self.shown, self.wanted = Grid(columns, rows, filled="?"), Grid(columns, rows)
            self.lost = True
