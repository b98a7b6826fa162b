"""What slash commands need of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from swecli.core.protocol.blocks import DisplayBlock
from swecli.tui.keys import KeyActions
from swecli.tui.link import CLOSE_TIME, OpenSession
from swecli.tui.options import Options


class Desk:
    """Implements ``talk.Desk`` on the application."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None:
        self._app.transcript.show(blocks, title)

    def flash(self, text: str) -> None:
        self._app.activity.flash(text)

    def put_back(self, text: str) -> None:
        self._app.prompt.editor.put(text)

    def leave(self) -> None:
        self._app.leave()

    def pick_mode(self) -> None:
        from swecli.commands.mode import MODE_MEANINGS
        from swecli.tui.dock.picker import Choice, Picker

        view = self._app.stage.link.view
        present = view.mode if view else None
        choices = [Choice(mode, mode, detail, mode == present) for mode, detail in MODE_MEANINGS.items()]
        self._app.slot.show(Picker("Mode", choices, self._app.talk.set_mode))

    def pick_model(self) -> None:
        self._app.run_worker(self._pick_model())

    async def _pick_model(self) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        refs = list(await asyncio.to_thread(self._options.models))
        view = self._app.stage.link.view
        present = view.model.ref if view and view.model else None
        if present and present not in refs:
            refs.insert(0, present)
        choices = [Choice(ref, ref, current=ref == present) for ref in refs]
        title = "Model: provider/name (type one that is not listed)"
        self._app.slot.show(Picker(title, choices, self._app.talk.set_model, free=True))

    def start_over(self) -> None:
        if self._options.new_session is None:
            self.flash("Quit and start swecli again for a new session")
        else:
            self._app.run_worker(self._start_over(self._options.new_session))

    async def _start_over(self, open_session: OpenSession) -> None:
        await self._app.stage.close(CLOSE_TIME)
        self._app.transcript.clear()
        self._app.play(open_session)
