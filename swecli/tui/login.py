"""Storing the key of a provider."""

from __future__ import annotations

import asyncio

from swecli.tui.keys import KeyActions
from swecli.tui.options import Options


class Login:
    """Asks for the provider and its key, and takes its model where the session has none."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options

    def begin(self, provider: str) -> None:
        """Ask for a key, and before that for the provider where none was named."""
        if self._options.store_key is None:
            self._app.activity.flash("Keys can't be stored here; swecli login does it")
        elif provider:
            self._app.run_worker(self._ask_if_known(provider))
        else:
            self._app.run_worker(self._pick_provider())

    async def _ask_if_known(self, provider: str) -> None:
        from swecli.core.protocol.blocks import TextBlock

        problem = await asyncio.to_thread(self._options.no_provider, provider)
        if problem:
            self._app.transcript.show((TextBlock(problem, "error"),), f"/login {provider}")
        else:
            self._ask_key(provider)

    async def _pick_provider(self) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        found = await asyncio.to_thread(self._options.providers)
        choices = [Choice(name, name, detail) for name, detail in found]
        picked = asyncio.get_running_loop().create_future()
        picker = Picker("Store a key for", choices, picked.set_result)
        self._app.slot.show(picker)
        provider = await picked
        while self._app.slot.panel is picker:  # noqa: ASYNC110 - it makes room once its last message has come through
            await asyncio.sleep(0)
        self._ask_key(provider)

    def _ask_key(self, provider: str) -> None:
        from swecli.tui.dock.secret import SecretPanel

        def done(key: str) -> None:
            self._app.run_worker(self._store_key(provider, key))

        note = "enter stores it in the system's keyring, or else in a file for you alone · esc leaves"
        self._app.slot.show(SecretPanel(f"Key for {provider}", note, done))

    async def _store_key(self, provider: str, key: str) -> None:
        from swecli.core.protocol.blocks import TextBlock

        store = self._options.store_key
        assert store is not None
        try:
            told, model = await asyncio.to_thread(store, provider, key)
        except ValueError as error:
            self._app.transcript.show((TextBlock(str(error), "error"),), f"/login {provider}")
            return
        self._app.transcript.show((TextBlock(told),), f"/login {provider}")
        view = self._app.stage.link.view
        if model and view is not None and view.model is None:
            self._app.talk.set_model(model)
