"""What slash commands need of the screen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from swecli.commands.base import Offer
from swecli.core.protocol.blocks import DisplayBlock
from swecli.safe_text import safe_line
from swecli.tui import help
from swecli.tui.keys import KeyActions
from swecli.tui.link import CLOSE_TIME, OpenSession
from swecli.tui.options import Options
from swecli.tui.talk import ScreenName
from swecli.tui.themes.library import AUTO


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

    def open_screen(self, name: ScreenName, words: str) -> None:
        """Open one of the screens, with something typed already."""
        screens = self._app.screens
        match name:
            case "help":
                screens.help(words)
            case "settings":
                screens.settings(words)
            case "permissions":
                screens.permissions(words)
            case "sessions":
                screens.sessions(words)

    def show_keys(self, words: str) -> None:
        """What every key does, or those that have to do with the words."""
        self.show(help.key_blocks(self._app.keymap, words), f"/keys {words}".rstrip())

    async def run_in_terminal(self, command: str, cwd: Path) -> tuple[str, int, float] | None:
        """Output, exit status and seconds of a command that had the terminal; None where that can't be given away."""
        from swecli.core.workspace.environment import scrubbed_environment
        from swecli.tui.user_shell import NoTerminal, run_in_terminal

        environment = scrubbed_environment(os.environ)
        for name in ("PAGER", "GIT_PAGER", "MANPAGER"):  # there is somebody who can turn pages
            environment.pop(name)
            if name in os.environ:
                environment[name] = os.environ[name]
        try:
            ran = await run_in_terminal(self._app, command, cwd, environment)
        except NoTerminal:
            return None
        return ran.output, ran.exit_status, ran.duration

    def offer(self, offer: Offer) -> None:
        """Ask whether something is to be done; Enter does it, Esc leaves it."""
        from swecli.tui.dock.picker import Choice, Picker

        choices = [Choice("yes", *offer.yes), Choice("no", *offer.no)]

        def picked(value: str) -> None:
            if value == "yes":
                self._app.stage.link.send(offer.command)

        self._app.slot.show(Picker(offer.title, choices, picked))

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
        from swecli.commands.model_table import summary
        from swecli.tui.dock.picker import Choice, Picker

        refs = list(await asyncio.to_thread(self._options.models))
        view, port = self._app.stage.link.view, self._app.stage.link.port
        present = view.model.ref if view and view.model else None
        if present and present not in refs:
            refs.insert(0, present)
        offered = {offer.ref: summary(offer) for offer in await port.models()} if port is not None else {}
        known = dict.fromkeys([*refs, *offered])
        choices = [Choice(ref, ref, offered.get(ref, ""), ref == present) for ref in known]
        title = "Model: provider/name (type one that is not listed)"
        self._app.slot.show(Picker(title, choices, self._app.talk.set_model, free=True))

    def pick_effort(self) -> None:
        from swecli.commands.effort import DEFAULT
        from swecli.tui.dock.picker import Choice, Picker

        view = self._app.stage.link.view
        if view is None or view.model is None:
            return
        if view.model.efforts == ():
            self.flash(f"{safe_line(view.model.ref)} takes no word for how much it thinks")
            return
        words = (DEFAULT, *(view.model.efforts or ("low", "medium", "high")))
        present = view.effort or DEFAULT
        choices = [Choice(word, word, "", word == present) for word in dict.fromkeys((*words, present))]
        known = view.model.efforts is not None
        title = "Effort" if known else "Effort (this model's words are not known; type another one)"
        self._app.slot.show(Picker(title, choices, self._app.talk.set_effort, free=not known))

    def pick_theme(self, name: str) -> None:
        """Choose a theme by its name, or from a list that shows each one while it is pointed at."""
        appearance = self._app.appearance
        if name:
            if appearance.library.resolve(name, appearance.dark) is None:
                self.flash(appearance.library.unknown(name).replace("the default is used", "nothing was changed"))
            else:
                self._set_theme(name)
            return
        from swecli.tui.dock.picker import Choice, Picker

        wanted = appearance.wanted
        choices = [Choice(AUTO, AUTO, "follows the terminal", wanted == AUTO)]
        for theme in appearance.library.names:
            scheme = appearance.library.scheme(theme)
            detail = "16 colours of the terminal" if scheme is None else "dark" if scheme.dark else "light"
            choices.append(Choice(theme, theme, detail, theme == wanted))
        picker = Picker("Theme", choices, self._set_theme, look=appearance.preview, leave=appearance.apply)
        self._app.slot.show(picker)

    def _set_theme(self, name: str) -> None:
        self._app.appearance.want(name)
        self._app.run_worker(self._keep("ui.theme", name, f"Theme {name}"))

    async def _keep(self, key: str, value: str, told: str) -> None:
        """Write a setting, and say where it went."""
        if self._options.remember is None:
            self.flash(f"{told}, for this session")
            return
        try:
            place = await asyncio.to_thread(self._options.remember, key, value)
        except ValueError as error:
            self.flash(f"{told}, for this session only: {safe_line(str(error))}")
        else:
            self.flash(f"{told}, stored in {safe_line(place)}")

    def log_in(self, provider: str) -> None:
        """Ask for a key, and before that for the provider where none was named."""
        if self._options.store_key is None:
            self.flash("Keys can't be stored here; swecli login does it")
        elif provider:
            self._ask_key(provider)
        else:
            self._app.run_worker(self._pick_provider())

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
            self.show((TextBlock(str(error), "error"),), f"/login {provider}")
            return
        self.show((TextBlock(told),), f"/login {provider}")
        view = self._app.stage.link.view
        if model and view is not None and view.model is None:
            self._app.talk.set_model(model)

    def start_over(self) -> None:
        if self._options.new_session is None:
            self.flash("Quit and start swecli again for a new session")
        else:
            self._app.run_worker(self._start_over(self._options.new_session))

    async def _start_over(self, open_session: OpenSession) -> None:
        await self._app.stage.close(CLOSE_TIME)
        self._app.transcript.clear()
        self._app.play(open_session)
