"""Choosing the permission mode: the key that goes to the next one, a list, and a name."""

from __future__ import annotations

from typing import get_args

from swecli.core.protocol.commands import SetMode
from swecli.core.protocol.events import Mode
from swecli.tui.dock.picker import Choice, Picker
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController


class ModeChoice:
    """Asks the session for a mode and says what it means."""

    def __init__(self, screen: MainScreen, session: SessionController) -> None:
        self._screen = screen
        self._session = session

    def next(self) -> None:
        from swecli.commands.mode import mode_label, modes_of

        present, yolo = self._session.mode, self._yolo
        if present is None:
            self._screen.activity.flash("The session is still opening")
            return
        modes = modes_of(yolo=yolo)
        after = modes.index(present) + 1 if present in modes else len(modes) - 1
        order: tuple[Mode, ...] = (*modes[after:], *modes[:after])
        mode: Mode = next(each for each in order if not self.refusal(each))
        skipped = self.refusal(order[0])

        def say(waiting: str = "") -> None:
            about = waiting or ("" if skipped else self.meaning(mode))  # a refusal needs the room of one line
            label = f"Mode: {mode_label(mode, yolo=yolo)}{f' ({about})' if about else ''}"
            self._screen.activity.flash(
                f"{label}. {skipped}" if skipped else label,
                holds=(lambda: bool(self._session.state.requests)) if waiting else None,
            )

        self._session.come_to_mode(mode, say)
        say(self._screen.dock.meaning_for_waiting(mode))

    def set(self, name: str) -> None:
        modes: tuple[Mode, ...] = get_args(Mode)
        for mode in modes:
            if mode == name:
                self._session.send(SetMode(mode))
                if not self.refusal(mode):  # otherwise the session says why
                    self._screen.activity.flash(f"Mode: {mode} ({self.meaning(mode)})")

    def pick(self) -> None:
        from swecli.commands.mode import mode_label, modes_of

        present, yolo = self._session.mode, self._yolo
        shown = present and mode_label(present, yolo=yolo)
        choices = [
            Choice(mode, (label := mode_label(mode, yolo=yolo)), off or self.meaning(mode), label == shown)
            for mode in modes_of(yolo=yolo)
            for off in (self.refusal(mode).removeprefix(f"Mode {mode} is "),)  # the row names the mode
        ]
        self._screen.dock.show(Picker("Mode", choices, self.set))

    def choices(self) -> list[Choice]:
        """Those that the session may change to, for the palette."""
        from swecli.commands.mode import mode_label, modes_of

        return [
            Choice(f"mode {mode}", f"mode: {mode_label(mode, yolo=self._yolo)}", self.meaning(mode))
            for mode in modes_of(yolo=self._yolo)
            if mode != self._session.mode and not self.refusal(mode)
        ]

    @property
    def _yolo(self) -> bool:
        view = self._session.view
        return view is not None and view.yolo

    def meaning(self, mode: Mode) -> str:
        from swecli.commands.mode import mode_meaning

        return mode_meaning(mode, self._session.state.sandbox, yolo=self._yolo)

    def refusal(self, mode: Mode) -> str:
        view = self._session.view
        return "" if view is None else view.mode_refusal(mode)
