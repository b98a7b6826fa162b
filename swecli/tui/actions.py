"""Actions behind keys and slash commands: pickers and questions in the dock, lists in place of the transcript."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from textual.message import Message

from swecli.commands.base import LATER, Offer, Screen, SlashCommand, Word, listed
from swecli.core.protocol.commands import CarryOut, Command, Rewind, SetEffort, SetMode, SetModel, Submit
from swecli.core.protocol.events import Mode, NoticeLevel
from swecli.safe_text import safe_line
from swecli.tui import keymap
from swecli.tui.backend import Backend, Setting, Written
from swecli.tui.keymap import Keymap
from swecli.tui.known_models import KnownModels
from swecli.tui.main_screen import MainScreen
from swecli.tui.prompt.box import Prompt
from swecli.tui.session_controller import SessionController
from swecli.tui.session_switch import SessionSwitch
from swecli.tui.status_bar import LOOKING
from swecli.tui.themes.appearance import Appearance
from swecli.tui.themes.library import AUTO

if TYPE_CHECKING:
    from swecli.core.engine.message_weight import Weight
    from swecli.core.engine.rewind import RewindPoint
    from swecli.core.llm.offers import ModelOffer
    from swecli.core.permissions.types import Rule
    from swecli.tui.connect import Connection
    from swecli.tui.dock.picker import Choice

RECENT: Final = 60.0
"""Seconds for which the palette uses the models that the servers listed before."""


class Actions:
    """Runs these actions."""

    @dataclass
    class CommandChosen(Message):
        """Asks to run a slash command as if it had been typed."""

        text: str

    class PreferencesChanged(Message):
        """Asks to re-read the user's interface settings."""

    def __init__(
        self,
        screen: MainScreen,
        session: SessionController,
        backend: Backend,
        appearance: Appearance,
        keys: Keymap,
        clock: Callable[[], float],
    ) -> None:
        """``clock`` is Unix seconds."""
        self._screen = screen
        self._session = session
        self._backend = backend
        self._appearance = appearance
        self._keymap = keys
        self._clock = clock
        self._switch = SessionSwitch(screen, session, backend, self.flash, self.ask)
        self._models = KnownModels(screen, session, backend, clock)
        self._pending: list[str] = []
        """Changed settings that apply from the next session on."""
        self.plan_waits = False
        """Whether the question about a plan waits for an open panel."""
        self._builtin: Sequence[SlashCommand] = ()
        self.own_commands: Sequence[SlashCommand] = ()
        """Commands of the user, the project and servers."""
        self.model_tried = asyncio.Event()
        """Clear while a picked model is being tried: messages wait until it is connected."""
        self.model_tried.set()

    def commands(self) -> Sequence[SlashCommand]:
        """All commands. Those that come with swecli are loaded when they are first asked for, in 6 ms."""
        if not self._builtin:
            self._builtin = self._backend.commands()
        return (*self._builtin, *self.own_commands)

    def words(self, name: str) -> Iterable[Word]:
        """What the arguments of the command with this name may begin with."""
        from swecli.commands.registry import find

        command = find(name, self.commands())
        if command is None or self._session.port is None:
            return ()
        if command.name == "theme":
            return map(Word, (AUTO, *self._appearance.library.names))
        if command.name == "model":
            return map(Word, self._models.last)
        return command.words(self._session.port)

    def open(self, name: Screen, words: str = "") -> None:
        """Open what a command asks for; ``words`` are the search or initial input of screens that take one."""
        match name:
            case "quit":
                self._screen.post_message(Prompt.Leave())
            case "clear":
                self._switch.start_over()
            case "pick_mode":
                self.pick_mode()
            case "pick_model":
                self._screen.run_worker(self.pick_model())
            case "pick_effort":
                self.pick_effort()
            case "pick_theme":
                self.pick_theme(words)
            case "keys":
                blocks = keymap.key_blocks(self._keymap, words)
                self._screen.transcript.show(blocks, f"/keys {words}".rstrip())
            case "find":
                self.find(words)
            case "login":
                self.log_in(words)
            case "help":
                self.show_help(words)
            case "settings":
                self.show_settings(words)
            case "permissions":
                self.show_permissions(words)
            case "sessions":
                self.show_sessions(words)
            case "rewind":
                self.show_rewind(words)
            case "fork":
                self._switch.fork(words)
            case "jobs":
                self.show_jobs(words)
            case "playbook":
                self.show_playbook(words)
            case "context":
                self.show_context(words)
            case "compact":
                self.show_plan()
            case "wire":
                self.show_wire(words)
            case "cache":
                self.show_cache(words)
            case "editing":
                self._screen.run_worker(self.switch_editing())
            case "edit_file":
                self._screen.run_worker(self.edit_file(Path(words)))
            case "price":
                self.ask_price(words)
            case "edit_plan":
                self.edit_plan()
            case "keep_model":
                self._screen.run_worker(self._keep_model(words))
            case "trust_folder":
                self._screen.run_worker(self._trust_folder())
            case "add_folder":
                self._backend.add_folder(Path(words))
                self._switch.reopen(f"Added {words} to the session")

    async def _trust_folder(self) -> None:
        """Trust the folder as the user asked, and reopen the session, which then has its settings and instructions."""
        gate = self._backend.trust
        if gate is None:
            self.flash("This folder can't be trusted from here; `swecli permissions trust` does it")
        elif trouble := await asyncio.to_thread(gate.answer, "trust"):
            self.flash(trouble)
        elif self._session.spoke and (self._backend.sessions() is None or not self._session.continuable):
            self.flash("This folder is now trusted; it counts from the next session (/clear starts one)")
        else:
            self._switch.reopen("This folder is now trusted")

    def flash(self, text: str) -> None:
        """Show a short message of untrusted text; paths in the home folder are shortened to ``~``."""
        from swecli.tui.greeting import short_paths

        self._screen.activity.flash(safe_line(short_paths(text, os.environ.get("HOME", ""))), 6.0)

    # --- requests to the session ---

    def next_mode(self) -> None:
        from swecli.commands.mode import mode_label, modes_of

        present, yolo = self._session.mode, self._yolo
        if present is None:
            self._screen.activity.flash("The session is still opening")
            return
        modes = modes_of(yolo=yolo)
        after = modes.index(present) + 1 if present in modes else len(modes) - 1
        order: tuple[Mode, ...] = (*modes[after:], *modes[:after])
        mode: Mode = next(each for each in order if not self._refusal(each))
        skipped = self._refusal(order[0])

        def say(waiting: str = "") -> None:
            self._screen.activity.flash(
                f"Mode: {mode_label(mode, yolo=yolo)} ({waiting or self._meaning(mode)}) {skipped}".rstrip(),
                holds=(lambda: bool(self._session.state.requests)) if waiting else None,
            )

        self._session.come_to_mode(mode, say)
        say(self._screen.dock.meaning_for_waiting(mode))

    @property
    def _yolo(self) -> bool:
        view = self._session.view
        return view is not None and view.yolo

    def _meaning(self, mode: Mode) -> str:
        from swecli.commands.mode import mode_meaning

        return mode_meaning(mode, self._session.state.sandbox, yolo=self._yolo)

    def _refusal(self, mode: Mode) -> str:
        view = self._session.view
        return "" if view is None else view.mode_refusal(mode)

    def set_mode(self, name: str) -> None:
        modes: tuple[Mode, ...] = get_args(Mode)
        for mode in modes:
            if mode == name:
                self._session.send(SetMode(mode))
                if not self._refusal(mode):  # otherwise the session says why
                    self._screen.activity.flash(f"Mode: {mode} ({self._meaning(mode)})")

    def set_effort(self, word: str) -> None:
        """Ask the session for an effort: one of the model's words, or its default."""
        from swecli.commands.models import DEFAULT

        self._session.send(SetEffort(None if word == DEFAULT else word))
        self._screen.activity.flash(f"Effort: {safe_line(word)} (from the next request)")

    def set_model(self, ref: str) -> None:
        """Ask the session for a model (``provider/name``), which also becomes the default of the next start; first the
        user, if that costs thoughts of the present one."""
        from swecli.commands.models import switch_offer

        port = self._session.port
        offer = switch_offer(port, ref) if port is not None else None
        if offer is None:
            self._use_model(ref)
        else:
            self.ask(offer.title, offer.yes, lambda: self._use_model(ref), offer.later)

    def _use_model(self, ref: str) -> None:
        before = self._session.view
        model = None if before is None else before.model
        self._session.send(SetModel(ref))  # the transcript reports the result
        view = self._session.view
        if view is not None and view.model is not None and view.model is not model:
            self._screen.run_worker(self._keep_model(view.model.ref))

    async def _keep_model(self, ref: str) -> None:
        """Make a picked model the default and report where that was written."""
        try:
            if said := await asyncio.to_thread(self._backend.keep_model, ref):
                self.flash(said)
        except ValueError as error:
            self.flash(f"For this session only: {error}")

    # --- pickers and questions in the dock ---

    def ask_about_plan(self, written: str | None = None) -> None:
        """Ask what to do with the newest answer if it is a plan; behind an open panel, once that is closed. ``written``
        is the plan as the user edited it."""
        from swecli.tui.dock.choices import PlanPanel

        view = self._session.view
        plan = view.plan if view is not None and not self._session.state.busy else None
        panel = self._screen.dock.panel
        self.plan_waits = plan is not None and panel is not None and not isinstance(panel, PlanPanel)
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
                    self.edit_plan()
                case "change":
                    self._change_plan()
                case _:
                    self._screen.activity.flash("Still planning; /plan go carries out the plan")

        self._screen.dock.show(PlanPanel(plan, chosen))

    def edit_plan(self) -> None:
        """Let the user edit the plan's file, then ask again what to do with it."""
        view = self._session.view
        plan = view.plan if view is not None else None
        if view is None or plan is None or not plan.path:
            self._screen.activity.flash("No written plan is waiting for your approval")
            return
        self._screen.run_worker(self._edit_plan(view.cwd / plan.path, plan.text), group="editor")

    async def _edit_plan(self, path: Path, text: str) -> None:
        from swecli.core.engine.plan import read_plan
        from swecli.core.protocol.blocks import MarkdownBlock
        from swecli.tui.external import ExternalError, open_file

        try:
            await open_file(self._screen.app, path)
        except ExternalError as error:
            self.flash(str(error))
        written = await asyncio.to_thread(read_plan, path)
        if written is not None and written != text.strip():
            self._screen.transcript.show((MarkdownBlock(written),), f"{path.name}, as you changed it")
        self.ask_about_plan(written)

    def _change_plan(self) -> None:
        from swecli.tui.dock.picker import Picker

        def said(text: str) -> None:
            if text.startswith("/"):
                self._screen.post_message(self.CommandChosen(text))
            else:
                self._session.send(Submit(f"Change the plan: {text}"))

        self._screen.dock.show(Picker("What should the plan change?", (), said, free=True))

    def offer(self, offer: Offer) -> None:
        """Ask whether to do something; Enter accepts, Esc declines."""
        from swecli.tui.dock.picker import Choice, Picker

        later = [Choice("later", *LATER)] if offer.later is not None else []
        choices = [Choice("yes", *offer.yes), *later, Choice("no", *offer.no)]

        def picked(value: str) -> None:
            if value == "yes":
                self._session.send(offer.command)
            elif value == "later" and offer.later is not None:
                self._session.send(offer.later)

        self._screen.dock.show(Picker(offer.title, choices, picked, narrow=False))

    def price_of_turning_back(self, item: str, *, undone: bool) -> str:
        """The price of the undo, or the redo, of a compaction, to follow what it does; empty if it is not possible."""
        from swecli.core.context_management.edit_effects import price_words

        port = self._session.port
        if port is None:
            return ""
        effect = port.prices.redo(item) if undone else port.prices.undo(item)
        return f": {price_words(effect)}" if effect is not None else ""

    def ask(self, question: str, yes: tuple[str, str], do: Callable[[], object], later: Command | None = None) -> None:
        """Ask before doing something; Esc cancels. ``later`` as in ``Offer``."""
        from swecli.tui.dock.picker import Choice, Picker

        waits = [Choice("later", *LATER)] if later is not None else []
        choices = [Choice("yes", *yes), *waits, Choice("no", "Cancel", "nothing changes")]

        def picked(value: str) -> None:
            if value == "yes":
                do()
            elif value == "later" and later is not None:
                self._session.send(later)

        picker = Picker(question, choices, picked)
        self._screen.dock.show(picker)
        if self._screen.dock.panel is not picker:
            self.flash("Answer the model's question first")

    async def ask_large(self, weight: Weight, *, pastes: bool, mentions: int) -> str:
        """Ask what to do with a large message: "send", "keep" only the paths of its attachments, or "cancel"."""
        from swecli.tui.dock.picker import Choice

        choices = [Choice("send", "Send it unchanged", "all of it goes to the model")] if weight.fits else []
        if pastes or mentions:
            keep = (
                "Keep it as a file, send its path"
                if pastes
                else f"Send only the {'path' if mentions == 1 else 'paths'}"
            )
            choices.append(Choice("keep", keep, "the model reads the parts it needs"))
        choices.append(Choice("cancel", "Cancel", "back into the prompt"))
        fits = "" if weight.fits else ": too large to send"
        return await self._chosen(f"This message takes {weight.shown}{fits}", choices)

    def ask_price(self, model: str) -> None:
        """Ask for a model's price. Input that is no price goes to the prompt."""
        from swecli.commands.session import price_of
        from swecli.tui.dock.picker import Picker

        def typed(text: str) -> None:
            if text.startswith("/"):
                self._screen.post_message(self.CommandChosen(text))
            elif price_of(text) is not None or not any(sign.isalpha() for sign in text):
                self._screen.post_message(self.CommandChosen(f"/usage price {model} {text}"))
            else:
                self._screen.prompt.receive(text)
                self._screen.activity.flash("Not a price, so it was not sent; it is back in your prompt")

        title = f"Price of {safe_line(model)}, $ per million tokens: input output [cached], such as 3 15 0.3"
        self._screen.dock.show(Picker(title, (), typed, free=True))

    async def ask_note(self, note: str, here: str, own: str) -> str:
        """Ask where to store a note: "here", the user's "own" file, "send" (as a message instead) or "cancel"."""
        from swecli.tui.dock.picker import Choice

        choices = [
            Choice("here", f"Add it to {here}", "this folder's instructions"),
            Choice("own", f"Add it to {safe_line(own)}", "your own"),
            Choice("send", "Send it as a message", "nothing is added"),
            Choice("cancel", "Cancel", "back into the prompt"),
        ]
        return await self._chosen(f"Add to the instructions: {safe_line(note)}", choices)

    async def _chosen(self, title: str, choices: Sequence[Choice]) -> str:
        """Ask and wait for the choice; "cancel" if the question is closed or displaced."""
        from swecli.tui.dock.picker import Picker

        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def given(value: str = "cancel") -> None:
            if not answer.done():
                answer.set_result(value)

        picker = Picker(title, choices, given, narrow=False, gone=given)
        self._screen.dock.show(picker)
        if self._screen.dock.panel is not picker:
            self.flash("Answer the model's question first")
            return "cancel"
        return await answer

    def find(self, words: str = "") -> None:
        """Open the transcript search; if it is open, go to the previous match."""
        from swecli.tui.dock.find import FindPanel

        screen = self._screen
        self._session.show_all()
        if screen.list_view is not None:
            screen.dock.focus_panel()
        elif isinstance(screen.dock.panel, FindPanel):
            screen.transcript.action_find_previous()
        else:
            screen.dock.show(FindPanel(screen.transcript, words))

    def log_in(self, provider: str = "") -> None:
        """Ask for a provider's key, first for the provider if none is given."""
        self._screen.run_worker(self._connection.log_in(provider))

    def connect(self, *, waits: bool = False) -> None:
        """Offer ways to connect a model if there is none; ``waits``: a message in the prompt waits for one."""
        self._screen.run_worker(self._connection.begin(waits=waits), group="connect", exclusive=True)

    def reconnect(self) -> None:
        """Offer another key or model after the provider refused the key."""
        self._screen.run_worker(self._connection.reconnect(), group="connect", exclusive=True)

    def connected(self) -> None:
        """Take back what the transcript says about having no model."""
        self._connection.connected()

    @cached_property
    def _connection(self) -> Connection:
        """One for all ways to a model, so that each replaces what the first screen said about having none."""
        from swecli.tui.connect import Connection

        def run(text: str) -> None:
            self._screen.post_message(self.CommandChosen(text))

        return Connection(self._screen, self._session, self._backend, self.model_tried, run)

    def pick_mode(self) -> None:
        from swecli.commands.mode import mode_label, modes_of
        from swecli.tui.dock.picker import Choice, Picker

        present, yolo = self._session.mode, self._yolo
        shown = present and mode_label(present, yolo=yolo)
        choices = [
            Choice(mode, (label := mode_label(mode, yolo=yolo)), refusal or self._meaning(mode), label == shown)
            for mode in modes_of(yolo=yolo)
            for refusal in (self._refusal(mode),)
        ]
        self._screen.dock.show(Picker("Mode", choices, self.set_mode))

    async def pick_model(self) -> None:
        """Pick the model: a usable one from the list, or another one by typing. The list opens at once, so that no key
        typed behind the command is lost, and gets the servers' models when they have answered."""
        from swecli.commands.models import omitted, summary
        from swecli.tui.dock.picker import Choice, Picker

        present, port, answered = self._models.current, self._session.port, False

        def picked(value: str) -> None:
            if answered or value in known or "/" in value:
                self.set_model(value)
            else:  # the command waits for the servers, among whose models it looks for the name
                self._screen.post_message(self.CommandChosen(f"/model {value}"))

        def choices(offers: Sequence[ModelOffer]) -> list[Choice]:
            return [
                Choice(ref, ref, "" if offer is None else summary(offer), ref == present)
                for ref, offer in self._models.usable(known, offers).items()
            ]

        with self._screen.activity.beside(LOOKING):
            known = await self._models.names()
            picker = Picker("Model: select one, or type a name", choices(()), picked, free=True)
            self._screen.dock.show(picker)
            offers = await self._models.offers()
        answered = True
        if not picker.is_attached:
            return
        picker.offer(choices(offers))
        if port is None:
            return
        for trouble in port.offers.unlisted:  # whole sentences with a remedy, longer than the line above the list
            self._notice(trouble, "warning")
        if left_out := omitted(port.offers.omitted):
            self.flash(left_out)

    def pick_effort(self) -> None:
        """Pick the reasoning effort if the model has levels."""
        from swecli.commands.models import DEFAULT, choices, words
        from swecli.tui.dock.picker import Choice, Picker

        view = self._session.view
        if view is None or view.model is None:
            return
        if view.model.efforts == ():
            self._screen.activity.flash(f"{safe_line(view.model.ref)} has no effort levels")
            return
        present = view.effort or DEFAULT
        offered = dict.fromkeys((DEFAULT, *words(view.model), present))
        listed = [Choice(word, word, "", word == present) for word in offered]
        title = "Effort" if view.model.efforts is not None else "Effort (this model's levels are unknown)"
        picker = Picker(title, listed, self.set_effort, nothing=safe_line(choices(view.model)))
        self._screen.dock.show(picker)

    def pick_theme(self, name: str = "") -> None:
        """Set the theme by name, or pick it from a list with live preview."""
        library, appearance = self._appearance.library, self._appearance
        if name:
            if library.resolve(name, appearance.dark) is None:
                self._screen.activity.flash(library.unknown(name, "nothing was changed"))
            else:
                self._set_theme(name)
            return
        from swecli.tui.dock.picker import Choice, Picker

        choices = [Choice(AUTO, AUTO, "follows the terminal", appearance.wanted == AUTO)]
        for theme in library.names:
            scheme = library.scheme(theme)
            detail = "the terminal's 16 colours" if scheme is None else "dark" if scheme.dark else "light"
            choices.append(Choice(theme, theme, detail, theme == appearance.wanted))
        picker = Picker("Theme", choices, self._set_theme, preview=appearance.preview, cancelled=appearance.apply)
        self._screen.dock.show(picker)

    def _set_theme(self, name: str) -> None:
        self._appearance.want(name)
        self._screen.run_worker(self._keep_theme(name))

    async def _keep_theme(self, name: str) -> None:
        """Write the theme to the user's settings and report where."""
        note = self._appearance.library.note
        shown = f"Theme: {name}{f', {note}' if note and self._appearance.library.scheme(name) is not None else ''}"
        try:
            place = await asyncio.to_thread(self._backend.remember, "ui.theme", name)
        except ValueError as error:
            self.flash(f"{shown} (for this session only: {error})")
        else:
            self._screen.post_message(self.PreferencesChanged())
            self.flash(f"{shown} (saved in {place})")

    async def switch_editing(self) -> None:
        """Switch vim keys in the prompt on or off, now and for later starts."""
        wanted = "usual" if self._screen.prompt.editing else "vim"
        said = "Vim keys: Esc for normal mode, i to type" if wanted == "vim" else "Vim keys off"
        self._screen.prompt.use_vim(wanted == "vim")
        try:
            place = await asyncio.to_thread(self._backend.remember, "ui.editing", wanted)
        except ValueError as error:
            self.flash(f"{said} (for this session only: {error})")
        else:
            self._screen.post_message(self.PreferencesChanged())
            self.flash(f"{said} (saved in {place})")

    async def edit_file(self, file: Path) -> None:
        """Open one of the user's files in their editor, creating its folder if needed, and report the result in the
        transcript."""
        from swecli.core.atomic_text import make_private
        from swecli.tui.external import ExternalError, open_file

        try:
            await asyncio.to_thread(make_private, file.parent)
            before = await asyncio.to_thread(_stamp, file)
            await open_file(self._screen.app, file)
            after = await asyncio.to_thread(_stamp, file)
        except (ExternalError, OSError) as error:
            self._notice(f"{error}. The file is {file}", "warning")
            return
        if before == after:
            self._notice(f"{file} is unchanged.")
            return
        done = "Edited" if before and after else "Wrote" if after else "Deleted"
        self._notice(f"{done} {file} in your editor. New conversations (/clear) use the new version.")

    def _notice(self, text: str, level: NoticeLevel = "info") -> None:
        """Show a notice in the transcript."""
        if (port := self._session.port) is not None:
            port.notice(text, level)

    # --- the palette ---

    def open_palette(self) -> None:
        self._screen.run_worker(self._show_palette(), group="palette", exclusive=True)

    async def _show_palette(self) -> None:
        from swecli.tui.dock.picker import Picker

        with self._screen.activity.beside(LOOKING):
            refs = await self._models.names()
        picker = Picker("Command palette", self._palette(refs), self._do)
        self._screen.dock.show(picker)
        models = await self._models.find(refs, RECENT)
        if picker.is_attached:
            picker.add(_model_choices([ref for ref in models if ref not in refs], self._models.current))

    def _palette(self, models: Sequence[str]) -> list[Choice]:
        """Palette entries that make sense now: none that needs an idle session while a turn runs, and not the current
        mode, model or theme."""
        from swecli.commands.mode import mode_label, modes_of
        from swecli.tui.dock.picker import Choice

        view, appearance = self._session.view, self._appearance
        choices = [
            Choice(f"command {command.name}", f"/{command.name} {command.arguments}".rstrip(), command.summary)
            for command in listed(self.commands())
            if not self._session.state.busy or command.while_busy
        ]
        present = view.mode if view is not None else None
        choices += [
            Choice(f"mode {mode}", f"mode: {mode_label(mode, yolo=self._yolo)}", self._meaning(mode))
            for mode in modes_of(yolo=self._yolo)
            if mode != present and not self._refusal(mode)
        ]
        choices += _model_choices(models, self._models.current)
        choices += [
            Choice(f"theme {name}", f"theme: {name}")
            for name in (AUTO, *appearance.library.names)
            if name != appearance.wanted
        ]
        return choices

    def _do(self, value: str) -> None:
        kind, _, what = value.partition(" ")
        match kind:
            case "mode":
                self.set_mode(what)
            case "model":
                self.set_model(what)
            case "theme":
                self.pick_theme(what)
            case _:
                command = next(command for command in self.commands() if command.name == what)
                if command.arguments.startswith("<"):
                    self._screen.prompt.editor.put(f"/{what} ")
                else:
                    self._screen.post_message(self.CommandChosen(f"/{what}"))

    # --- lists ---

    def show_help(self, words: str = "") -> None:
        from swecli.tui.screens.help import HelpPage

        def take(text: str) -> None:
            self._screen.close_list()
            self._screen.prompt.editor.put(text)

        self._screen.open_list(HelpPage(self.commands(), self._keymap, take), words)

    def show_settings(self, words: str = "") -> None:
        from swecli.tui.screens.settings import Offered, Preview, SettingsPage

        try:
            port = self._backend.settings()
        except ValueError as error:
            self.flash(str(error))
        else:
            appearance = self._appearance

            async def themes() -> Sequence[str]:
                return await asyncio.to_thread(lambda: (AUTO, *appearance.library.names))

            async def models() -> Sequence[str]:
                return tuple(await self._models.find())

            offers = {
                "ui.theme": Offered(themes, Preview(appearance.preview, appearance.apply)),
                "model.name": Offered(models),
            }
            self._screen.open_list(SettingsPage(port, self._changed, self.flash, offers), words)

    def show_permissions(self, words: str = "") -> None:
        from swecli.tui.screens.permissions import PermissionsPage

        try:
            port = self._backend.permissions()
        except ValueError as error:
            self.flash(str(error))
        else:
            page = PermissionsPage(port, self.flash, self._rules_changed, self._rules_held, self._session.send)
            self._screen.open_list(page, words)

    def _rules_held(self) -> Sequence[Rule]:
        return view.rules if (view := self._session.view) is not None else ()

    def show_sessions(self, words: str = "", *, everywhere: bool = False) -> None:
        from swecli.tui.screens.sessions import SessionsPage

        port, view = self._backend.sessions(), self._session.view
        if port is None:
            self.flash("Sessions are not stored here, so none can be resumed")
            return
        page = SessionsPage(
            port,
            self._switch.go_to,
            self.flash,
            self.ask,
            present=view.session_id if view is not None else "",
            folder=str(view.cwd) if view is not None else "",
            everywhere=everywhere,
            clock=self._clock,
        )
        self._screen.open_list(page, words)

    def show_rewind(self, words: str = "") -> None:
        """List the user's messages to rewind to, unless a turn runs."""
        from swecli.tui.screens.rewind import RewindPage, SessionPoints

        port = self._session.port
        if port is None or self._session.state.busy:
            self.flash(
                "A turn is running; press Esc to interrupt it, then rewind" if port else "The session is still opening"
            )
            return
        self._screen.open_list(RewindPage(SessionPoints(port), self._rewind_to, self._clock), words)

    def _rewind_to(self, point: RewindPoint) -> None:
        """Ask what to restore to its state before a message."""
        from swecli.commands.rewind import changed_words, short, since
        from swecli.core.context_management.edit_effects import price_words
        from swecli.tui.dock.picker import Choice, Picker

        self._screen.close_list()
        changed, port = changed_words(point), self._session.port
        effect = port.prices.rewind(point.item) if port is not None else None
        price = price_words(effect) if effect is not None else since(point)
        choices = [
            Choice("both", "Conversation and files", f"{price} · {changed}"),
            Choice("conversation", "Conversation only", f"{price} · files are unchanged"),
            Choice("files", "Files only", "the conversation is unchanged"),
            Choice("no", "Cancel", "nothing changes"),
        ]
        choices = choices if point.files else [choices[1], choices[3]]

        def picked(value: str) -> None:
            if value == "both" or value == "conversation" or value == "files":
                self._session.send(Rewind(point.item, value))

        title = f"Rewind to before: {safe_line(short(point.text))}"
        self._screen.dock.show(Picker(title, choices, picked, narrow=False, cancelled=self.show_rewind))

    def show_jobs(self, words: str = "") -> None:
        from swecli.tui.screens.jobs import JobsPage, SessionCommands

        commands = SessionCommands(self._session, self._screen.transcript)
        self._screen.open_list(JobsPage(commands, self.flash, self.ask, self._clock), words)

    def show_playbook(self, words: str = "") -> None:
        from swecli.tui.screens.playbook import PlaybookPage

        port = self._session.port
        if port is not None:
            self._screen.open_list(PlaybookPage(port.playbook, self.flash, self.ask), words)

    def show_context(self, words: str = "") -> None:
        from swecli.tui.screens.inspector import Inspector

        port = self._session.port
        if port is not None:
            self._screen.open_board(Inspector(port, self._session.send, self.flash, self._clock, words))

    def show_plan(self) -> None:
        from swecli.tui.screens.compaction import PlanBoard

        port = self._session.port
        if port is not None:
            self._screen.open_board(PlanBoard(port, self._session.send, self.flash))

    def show_wire(self, draft: str = "") -> None:
        from swecli.tui.screens.wire import WireBoard

        port = self._session.port
        if port is not None:
            self._screen.open_board(WireBoard(port, self.flash, draft))

    def show_cache(self, words: str = "") -> None:
        from swecli.tui.screens.cache import CacheBoard

        port = self._session.port
        if port is not None:
            self._screen.open_board(CacheBoard(port, words))

    def list_closed(self) -> None:
        """After a list closed, ask about settings that need a new session."""
        self._screen.close_list()
        pending, self._pending = self._pending, []
        view = self._session.view
        if not pending or view is None:
            return
        names = ", ".join(dict.fromkeys(pending))
        if self._backend.sessions() is None or view.busy or not self._session.continuable:
            self.flash(f"{names}: applies from the next session (/clear starts one)")
            return
        from swecli.tui.dock.picker import Choice, Picker

        choices = [
            Choice("now", "now", "reopens this session with the new settings"),
            Choice("later", "later", "from the next session"),
        ]

        def picked(value: str) -> None:
            if value == "now":
                self._switch.reopen("Reopened with the new settings")

        self._screen.dock.show(Picker(f"Apply {names}", choices, picked))

    def _rules_changed(self) -> None:
        self._screen.run_worker(self._follow_settings())

    def _changed(self, written: Written, setting: Setting) -> None:
        """Apply a written setting now, or note it for the next session."""
        if setting.effect == "session":
            self._pending.append(setting.name)
            return
        value = written.value
        match written.name:
            case "approval.mode":
                for mode in get_args(Mode):
                    if mode == value:
                        self._session.send(SetMode(mode))
            case "model.name" if isinstance(value, str):
                self._session.send(SetModel(value))
            case "model.effort" if value is None or isinstance(value, str):
                self._session.send(SetEffort(value))
            case name if name.startswith(("ui.", "keys.")):
                self._screen.post_message(self.PreferencesChanged())
            case _:
                self._screen.run_worker(self._follow_settings())

    async def _follow_settings(self) -> None:
        """Make the session apply the current settings."""
        port = self._session.port
        if port is None:
            return  # a session still opening reads them itself
        try:
            await port.follow_settings()
        except ValueError as error:
            self.flash(f"{error}; the session keeps its previous settings")


def _model_choices(refs: Sequence[str], present: str | None) -> list[Choice]:
    """Palette entries that switch to another model than the present one."""
    from swecli.tui.dock.picker import Choice

    return [Choice(f"model {ref}", f"model: {ref}") for ref in refs if ref != present]


def _stamp(file: Path) -> tuple[int, int] | None:
    """Fingerprint that changes when a file is written; None if there is no file."""
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return about.st_mtime_ns, about.st_size
