"""The question about a proposed plan, and editing it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from swecli.core.protocol.commands import CarryOut, Submit
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController


class PlanQuestion:
    """Asks what to do with the session's plan."""

    def __init__(self, screen: MainScreen, session: SessionController) -> None:
        self._screen = screen
        self._session = session
        self.waits = False
        """Whether the question waits for an open panel."""

    def ask(self, written: str | None = None) -> None:
        """Ask what to do with the newest answer if it is a plan; behind an open panel, once that is closed. ``written``
        is the plan as the user edited it."""
        from swecli.tui.dock.choices import PlanPanel

        view = self._session.view
        plan = view.plan if view is not None and not self._session.state.busy else None
        panel = self._screen.dock.panel
        self.waits = plan is not None and panel is not None and not isinstance(panel, PlanPanel)
        if plan is None or panel is not None:
            return
        if written is not None:
            from msgspec import structs

            from swecli.core.engine.plan import steps_of

            plan = structs.replace(plan, steps=steps_of(written))

        def chosen(value: str) -> None:
            match value:
                case "default" | "accept-edits":
                    self._session.send(CarryOut(value))
                case "edit":
                    self.edit()
                case "change":
                    self._change()
                case _:
                    self._screen.activity.flash("Still planning; /plan go carries out the plan")

        self._screen.dock.show(PlanPanel(plan, chosen))

    def edit(self) -> None:
        """Let the user edit the plan's file, then ask again what to do with it."""
        view = self._session.view
        plan = view.plan if view is not None else None
        if view is None or plan is None or not plan.path:
            self._screen.activity.flash("No written plan is waiting for your approval")
            return
        self._screen.run_worker(self._edit(view.cwd / plan.path, plan.text), group="editor")

    async def _edit(self, path: Path, text: str) -> None:
        from swecli.core.engine.plan import read_plan
        from swecli.core.protocol.blocks import MarkdownBlock
        from swecli.tui.external import ExternalError, open_file

        try:
            await open_file(self._screen.app, path)
        except ExternalError as error:
            self._screen.flash(str(error))
        written = await asyncio.to_thread(read_plan, path)
        if written is not None and written != text.strip():
            self._screen.transcript.show((MarkdownBlock(written),), f"{path.name}, as you changed it")
        self.ask(written)

    def _change(self) -> None:
        from swecli.tui.dock.picker import Picker

        def answer(text: str) -> None:
            if text.startswith("/"):
                self._screen.post_message(MainScreen.Wanted(text))
            else:
                self._session.send(Submit(f"Change the plan: {text}"))

        self._screen.dock.show(Picker("What should the plan change?", (), answer, free=True))
