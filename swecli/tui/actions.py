"""What slash commands ask of the screen: pickers, panels, screens, copies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from swecli.commands.base import Clip, Offer, Screen
from swecli.core.protocol.blocks import DisplayBlock
from swecli.safe_text import safe_line
from swecli.tui import clipboard, keymap
from swecli.tui.keys import KeyActions
from swecli.tui.options import Options
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.session_link import CLOSE_TIME, OpenSession
from swecli.tui.themes.library import AUTO


class Pickers:
    """Shows them in place of the prompt, and carries out what was chosen."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options

    def mode(self) -> None:
        """Choose the permission mode."""
        from swecli.commands.session import MODE_MEANINGS
        from swecli.tui.dock.picker import Choice, Picker

        view = self._app.stage.link.view
        present = view.mode if view else None
        choices = [Choice(mode, mode, detail, mode == present) for mode, detail in MODE_MEANINGS.items()]
        self._app.slot.show(Picker("Mode", choices, self._app.talk.set_mode))

    async def model(self) -> None:
        """Choose the model: those that are known, or another one that is typed."""
        from swecli.commands.models import summary
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

    def effort(self) -> None:
        """Choose how much the model thinks, where it takes a word for that."""
        from swecli.commands.models import DEFAULT, choices, words
        from swecli.tui.dock.picker import Choice, Picker

        view = self._app.stage.link.view
        if view is None or view.model is None:
            return
        if view.model.efforts == ():
            self._app.activity.flash(f"{safe_line(view.model.ref)} has no effort levels")
            return
        present = view.effort or DEFAULT
        offered = dict.fromkeys((DEFAULT, *words(view.model), present))
        listed = [Choice(word, word, "", word == present) for word in offered]
        title = "Effort" if view.model.efforts is not None else "Effort (this model's levels are unknown)"
        picker = Picker(title, listed, self._app.talk.set_effort, nothing=safe_line(choices(view.model)))
        self._app.slot.show(picker)

    def theme(self, name: str) -> None:
        """Choose a theme by its name, or from a list that shows each one while it is pointed at."""
        appearance = self._app.appearance
        if name:
            if appearance.library.resolve(name, appearance.dark) is None:
                self._app.activity.flash(
                    appearance.library.unknown(name).replace("the default is used", "nothing was changed")
                )
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
            self._app.activity.flash(f"{told}, for this session")
            return
        try:
            place = await asyncio.to_thread(self._options.remember, key, value)
        except ValueError as error:
            self._app.activity.flash(f"{told}, for this session only: {safe_line(str(error))}")
        else:
            self._app.activity.flash(f"{told}, stored in {safe_line(place)}")


class Login:
    """Asks for the provider and its key, and takes its model where the session has none."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options

    def begin(self, provider: str) -> None:
        """Ask for a key, and before that for the provider where none was named."""
        if self._options.store_key is None:
            self._app.activity.flash("Keys cannot be stored here; use swecli login")
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
        picker = Picker("Add an API key for", choices, picked.set_result)
        self._app.slot.show(picker)
        provider = await picked
        while self._app.slot.panel is picker:  # noqa: ASYNC110 - it makes room once its last message has come through
            await asyncio.sleep(0)
        self._ask_key(provider)

    def _ask_key(self, provider: str) -> None:
        from swecli.tui.dock.question import SecretPanel

        def done(key: str) -> None:
            self._app.run_worker(self._store_key(provider, key))

        note = "enter stores it in the system keyring, or else in a file only you can read · esc cancels"
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


class Doors:
    """One door for each name. What is opened gets the words that came with the command."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options
        pickers, screens = Pickers(app, options), app.screens
        self._doors: Mapping[Screen, Callable[[str], object]] = {
            "quit": lambda _: app.leave(),
            "clear": lambda _: self._start_over(),
            "pick_mode": lambda _: pickers.mode(),
            "pick_model": lambda _: app.run_worker(pickers.model()),
            "pick_effort": lambda _: pickers.effort(),
            "pick_theme": pickers.theme,
            "keys": self._show_keys,
            "find": app.find,
            "login": Login(app, options).begin,
            "help": screens.help,
            "settings": screens.settings,
            "permissions": screens.permissions,
            "sessions": screens.sessions,
            "jobs": screens.jobs,
            "add_folder": self._add_folder,
        }

    def open(self, name: Screen, words: str = "") -> None:
        """Open it, with these words typed or looked for where that makes sense."""
        self._doors[name](words)

    def _show_keys(self, words: str) -> None:
        """What every key does, or those that have to do with the words."""
        self._app.transcript.show(keymap.key_blocks(self._app.keymap, words), f"/keys {words}".rstrip())

    def _add_folder(self, path: str) -> None:
        """Open the session again, to work in one more folder."""
        if self._options.add_folder is None:
            self._app.activity.flash(f"Quit, and start with --add-dir {safe_line(path)}")
        else:
            self._options.add_folder(Path(path))
            self._app.screens.open_again(f"Added {path} to the session")

    def _start_over(self) -> None:
        new = self._options.new_session
        if new is None:
            self._app.activity.flash("Quit and start swecli again for a new session")
        else:
            self._app.run_worker(self._open_in_place(new))

    async def _open_in_place(self, new: OpenSession) -> None:
        await self._app.stage.close(CLOSE_TIME)
        self._app.transcript.clear()
        self._app.play(new)


def shown_path(path: Path) -> str:
    """A path for people, the home folder as ~."""
    home = Path.home()
    return safe_line(f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path))


class Copier:
    """Copies the screen's selection, or the editor's. ``write`` puts a sequence to the terminal, ``flash`` shows
    a short message; below ``state`` is kept what the terminal may not have taken."""

    def __init__(
        self,
        app: App[Any],
        editor: PromptEditor,
        write: Callable[[str], None],
        flash: Callable[[str], None],
        state: Path | None,
    ) -> None:
        self._app = app
        self._editor = editor
        self._write = write
        self._flash = flash
        self._state = state

    def unselect(self) -> None:
        """Nothing is selected any more."""
        self._app.screen.clear_selection()
        self._editor.move_cursor(self._editor.cursor_location)

    def copy_selection(self) -> None:
        """Copy what is selected, and clear the selection."""
        text = self._app.screen.get_selected_text() or self._editor.selected_text
        self.unselect()
        self.copy(text, "selection")

    def copy(self, text: str, what: str) -> None:
        """Copy a text; ``what`` names it in the message."""
        self._app.run_worker(self._copy(text, what), group="copy")

    async def _copy(self, text: str, what: str) -> None:
        size = f"{len(text):,} characters"
        if await asyncio.to_thread(clipboard.copy_with_helper, text, os.environ):
            self._flash(f"Copied the {what} ({size})")
            return
        kept = await asyncio.to_thread(clipboard.keep_in_file, text, self._state) if self._state is not None else None
        place = shown_path(kept) if kept is not None else ""
        sequence = clipboard.terminal_sequence(text, os.environ)
        if sequence is not None:
            self._write(sequence)
            self._flash(f"Copied the {what} through the terminal ({size}){f', and into {place}' if place else ''}")
        elif place:
            self._flash(f"Too long for the terminal's clipboard ({size}); the {what} is in {place}")
        else:
            self._flash(f"The {what} is too long for the terminal's clipboard; Shift+drag selects in the terminal")


class Desk:
    """Implements ``talk.Desk`` on the application."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._doors = Doors(app, options)

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None:
        self._app.transcript.show(blocks, title)

    def flash(self, text: str) -> None:
        self._app.activity.flash(text)

    def put_back(self, text: str) -> None:
        """Give the user back what could not be done. What they have typed since stays: a message comes before it, a
        command is in the history."""
        editor = self._app.prompt.editor
        if not editor.text:
            editor.put(text)
        elif not text.startswith(("/", "!")):
            editor.put(f"{text}\n{editor.message}")

    def open(self, name: Screen, words: str = "") -> None:
        """Open what a command asks for."""
        self._doors.open(name, words)

    async def run_in_terminal(self, command: str, cwd: Path) -> tuple[str, int, float] | None:
        """Output, exit status and seconds of a command that had the terminal; None where that can't be given away."""
        from swecli.core.workspace.process import scrubbed_environment
        from swecli.tui.input import NoTerminal, run_in_terminal

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

        self._app.slot.show(Picker(offer.title, choices, picked, narrow=False))

    def copy(self, clip: Clip) -> None:
        """Put a text on the clipboard, and say how far that is known to have worked."""
        self._app.copier.copy(clip.text, clip.what)
