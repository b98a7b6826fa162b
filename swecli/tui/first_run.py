"""The way to a model while none is connected: what was found is listed, one is picked, tried, and used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.safe_text import safe_line
from swecli.tui.session_link import CLOSE_TIME, OpenSession

if TYPE_CHECKING:
    from swecli.core.llm.offers import ModelOffer
    from swecli.core.llm.providers import ConfiguredProvider
    from swecli.tui.dock.picker import Choice, Picker
    from swecli.tui.keys import KeyActions
    from swecli.tui.options import Options


def providers(environ: Mapping[str, str]) -> Sequence[ConfiguredProvider]:
    """The providers whose key or address is in the environment."""
    from swecli.core.llm.providers import configured_providers

    return configured_providers(environ)


def blocks(environ: Mapping[str, str], running: Sequence[ModelOffer] = ()) -> tuple[DisplayBlock, ...]:
    """The first-run notice; ``running`` are models of servers on this machine. Values of keys are never shown."""
    found = [
        (item.key_variable, f"swecli -m {item.default_model or f'{item.name}/MODEL'}") for item in providers(environ)
    ]
    seen: list[DisplayBlock] = []
    if found:
        seen.append(TableBlock(("Found", "Use"), tuple(found), "In your environment"))
    if running:
        servers = {offer.ref.partition("/")[0]: 0 for offer in running}
        for offer in running:
            servers[offer.ref.partition("/")[0]] += 1
        rows = tuple((name, str(count)) for name, count in servers.items())
        seen.append(TableBlock(("Server", "Models"), rows, "Running on this machine"))
    if not seen:
        text = "There is no provider key in your environment and no model server on this machine."
        seen.append(TextBlock(text, "warning"))
    return (
        TextBlock("No model is connected yet; messages are not sent."),
        *seen,
        TextBlock(
            "/model selects one, /login adds an API key, swecli demo works without either.\n"
            "Any OpenAI-compatible server:\n"
            "  OPENAI_BASE_URL=http://localhost:8000/v1  swecli -m openai/MODEL"
        ),
    )


TITLE = "Connect a model: select one, or type provider/name"
LOGIN, DEMO = "add an API key", "demo"
"""What can be picked besides models; no model is called so, as they have no slash."""


class FirstRun:
    """Drives the screen as long as no model is connected."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options
        self._offers: Sequence[ModelOffer] = ()
        self._picker: Picker | None = None

    def begin(self) -> None:
        """Tell what is there, and offer it."""
        self._app.run_worker(self._begin())

    async def _begin(self) -> None:
        port = self._app.stage.link.port
        self._offers = [offer for offer in await port.models() if offer.usable] if port is not None else []
        running = [offer for offer in self._offers if offer.running]
        self._app.transcript.show(blocks(os.environ, running), "Welcome to swecli")
        if not self._connected and self._app.slot.panel is None and not self._app.prompt.editor.text:
            self._offer()

    @property
    def _connected(self) -> bool:
        view = self._app.stage.link.view
        return view is None or view.model is not None

    def _offer(self) -> None:
        from swecli.tui.dock.picker import Picker

        self._picker = Picker(TITLE, self._choices(), self._picked, free=True, unasked=True, end=self._app.leave)
        self._app.slot.show(self._picker)

    def _choices(self) -> list[Choice]:
        from swecli.commands.models import summary
        from swecli.tui.dock.picker import Choice

        usual = [provider.default_model for provider in providers(os.environ)]
        ordered = sorted(self._offers, key=lambda offer: (not offer.running, offer.ref not in usual))
        choices = [
            Choice(offer.ref, offer.ref, f"{'running here · ' if offer.running else ''}{summary(offer)}")
            for offer in ordered
        ]
        others: list[Choice] = []
        if self._options.store_key is not None:
            others.append(Choice(LOGIN, "Add an API key", "hidden as you type"))
        if self._options.demo is not None:
            others.append(Choice(DEMO, "See the demo", "a scripted model on a sample project: no key, no network"))
        return [*choices[:3], *others, *choices[3:]]

    def _picked(self, value: str) -> None:
        if value == LOGIN:
            self._app.run_worker(self._app.talk.submit("/login"))
        elif value == DEMO and self._options.demo is not None:
            self._app.run_worker(self._show_demo(self._options.demo))
        else:
            self._app.run_worker(self._try(value))

    async def _try(self, ref: str) -> None:
        from swecli.core.protocol.blocks import TextBlock

        test = self._options.try_model
        if test is not None:
            self._app.activity.flash(f"Testing {safe_line(ref)}…")
            works, told = await test(ref)
            self._app.transcript.show((TextBlock(told, "plain" if works else "error"),))
            if not works:
                while self._app.slot.panel is self._picker:  # noqa: ASYNC110 - its last message is on the way
                    await asyncio.sleep(0)
                if self._app.slot.panel is None:
                    self._offer()
                return
            await self._keep(ref)
        self._app.talk.set_model(ref)

    async def _keep(self, ref: str) -> None:
        """What works is what the next start begins with."""
        from swecli.core.protocol.blocks import TextBlock

        if self._options.keep_model is not None:
            try:
                block = TextBlock(await asyncio.to_thread(self._options.keep_model, ref), "dim")
            except ValueError as error:
                block = TextBlock(f"The next start will ask again: {error}", "warning")
            self._app.transcript.show((block,))

    async def _show_demo(self, demo: OpenSession) -> None:
        await self._app.stage.close(CLOSE_TIME)
        self._app.transcript.clear()
        await asyncio.sleep(0)
        self._app.play(demo)
