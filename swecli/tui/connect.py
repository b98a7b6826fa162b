"""Connecting a model: storing a provider's key, and picking a model if none is connected."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import SetModel
from swecli.figures import plural
from swecli.launch import StartError
from swecli.safe_text import safe_line
from swecli.tui.dock.picker import ROWS, Choice, Picker, Prompted
from swecli.tui.dock.question import SecretPanel
from swecli.tui.main_screen import MainScreen
from swecli.tui.program import Program
from swecli.tui.prompt.box import Prompt
from swecli.tui.session_controller import SessionController
from swecli.tui.status_bar import LOOKING
from swecli.tui.transcript.blocks import Remove

if TYPE_CHECKING:
    from swecli.core.llm.offers import ModelOffer
    from swecli.core.llm.providers import ConfiguredProvider


def providers(environ: Mapping[str, str]) -> Sequence[ConfiguredProvider]:
    """Providers with a key or address in the environment."""
    from swecli.core.llm.providers import configured_providers

    return configured_providers(environ)


NO_MODEL = "No model is connected yet"
WAYS = "Press Enter to add a key, or try `swecli demo`."
COMPATIBLE = "Any OpenAI-compatible server: OPENAI_BASE_URL=http://localhost:8000/v1 swecli"
WAYS_UNLISTED = "/model selects a model, /login adds an API key; `swecli demo` needs neither."


def model_lines(
    environ: Mapping[str, str],
    usable: Sequence[ModelOffer],
    unlisted: Sequence[str] = (),
    *,
    listed: bool = True,
    brief: bool = False,
    left_out: str = "",
) -> tuple[TextBlock, ...]:
    """That no model is connected, which ones are available, and what to do. Never shows key values. ``unlisted`` are
    sentences about servers that listed no models; ``listed``: the picker is open below; ``brief``: without what that
    shows too; ``left_out``: what the list leaves out."""
    troubles = [TextBlock(safe_line(trouble), "warning") for trouble in unlisted]
    keys = [item.key_variable for item in providers(environ) if item.key_variable]
    notes = [f"In your environment: {', '.join(keys)}"] if keys else []
    if not usable:
        why = "." if keys or troubles else ": no API key or local model server found."
        ways = WAYS if listed else WAYS_UNLISTED
        if troubles:
            return (TextBlock("\n".join((f"{NO_MODEL}{why}", *notes))), *troubles, TextBlock(ways))
        compatible = [] if brief else [TextBlock(COMPATIBLE, "dim")]
        return (TextBlock("\n".join((f"{NO_MODEL}{why}", *notes, ways))), *compatible)
    how = "Enter sends a short test message and connects." if listed else "/model selects one."
    near = [offer for offer in usable if offer.running or offer.listed]
    places = Counter(_place(offer, environ) for offer in near).items()
    notes = [*(f"{plural(count, 'model')} {location}" for location, count in places), *notes]
    lines = (f"{NO_MODEL}. {how}", *(() if brief and listed else notes))
    left = [TextBlock(left_out, "dim")] if left_out else []
    return (TextBlock("\n".join(lines)), *left, *troubles)


def _place(offer: ModelOffer, environ: Mapping[str, str]) -> str:
    """Where a model was found, as the user would name it."""
    name = offer.ref.partition("/")[0]
    variable = f"{name.upper()}_BASE_URL"
    if offer.running:
        return f"at {offer.running} ({name})"
    return f"at {variable}" if environ.get(variable) else f"listed by {name}"


SHOWN_MODELS = 8
"""Models of a long list shown before the other options, so that both fit a window of usual height."""

ROOM = 20
"""Rows besides the list's that its frame, a whole welcome and the reason why no model is connected take."""

LOOK_AGAIN = 2.0
"""Seconds after which the open list looks again for servers on this machine."""

TITLE = "Connect a model: select one, or type provider/name"
LOGIN, DEMO, OTHER = "add an API key", "demo", "other"
"""Choices besides models; they can't clash, because model names contain a slash."""


class Connection:
    """Connects a model: offers models, tries the picked one, and stores keys."""

    def __init__(
        self,
        screen: MainScreen,
        session: SessionController,
        program: Program,
        trying: asyncio.Event,
        run: Callable[[str], None],
    ) -> None:
        """``trying`` is clear while a model is tried; ``run`` runs a slash or shell command."""
        self._screen = screen
        self._session = session
        self._program = program
        self._run = run
        self._trying = trying
        self._offers: Sequence[ModelOffer] = ()
        self._shown = ""
        """Id of the block that says that no model is connected, where no greeting does."""
        self._picker: Picker | None = None
        self._nearby: Sequence[str] = ()
        """Addresses on this machine that answered when the models were last listed."""

    async def begin(self, *, waits: bool = False) -> None:
        """Show and offer the available models. ``waits``: a sent message waits in the prompt, so the list is shown at
        once."""

        with self._screen.activity.beside(LOOKING):
            await self._look()
        view = self._session.view
        unconnected = view is not None and view.model is None
        offers = unconnected and self._screen.dock.panel is None
        if waits:
            if offers:
                self._screen.activity.flash("No model is connected; your message waits in the prompt", 8.0)
                self._offer()
            return
        offers = offers and not self._screen.prompt.editor.text  # don't hide a draft behind a list
        self._say(listed=offers)
        if offers:
            self._offer()

    def _say(self, *, listed: bool) -> None:
        """Say that no model is connected and what to do: in the greeting, or else in a block of its own."""
        from swecli.commands.models import omitted  # not needed by the first frame

        port, view, transcript = self._session.port, self._session.view, self._screen.transcript
        if view is None or view.model is not None:
            return
        unlisted, left = (port.offers.unlisted, port.offers.omitted) if port is not None else ((), 0)
        low = self._screen.size.height < ROOM + min(len(self._choices()), ROWS)
        lines = model_lines(os.environ, self._offers, unlisted, listed=listed, brief=low, left_out=omitted(left))
        if not transcript.advise(lines, brief=low):
            self._shown = transcript.show(lines, over=self._shown)

    def connected(self) -> None:
        """Take back that there is no model."""
        if self._shown:
            self._screen.transcript.change_blocks((Remove(self._shown),))
            self._shown = ""

    def _offer(self) -> None:
        prompted = Prompted(self._commands, self._run)
        self._picker = Picker(
            TITLE,
            self._choices(),
            self._picked,
            free=True,
            prompted=prompted,
            quit=self._leave,
            cancelled=lambda: self._say(listed=False),
        )
        self._picker.set_interval(LOOK_AGAIN, self._look_nearby)
        self._screen.dock.show(self._picker)

    async def _look_nearby(self) -> None:
        """List the models anew where a server on this machine has started or ended since."""
        port, picker = self._session.port, self._picker
        if port is None or picker is None or await port.offers.nearby() == self._nearby:
            return
        before = self._offers
        await self._look()
        if self._screen.dock.panel is picker:
            picker.offer(self._choices(), top=not before)  # Enter then connects the first model, as is said above
            self._say(listed=True)

    def _leave(self) -> None:
        self._screen.post_message(Prompt.Leave())

    def _commands(self) -> list[Choice]:
        commands = self._screen.prompt.suggestions.commands()
        return [Choice(f"/{command.name}", f"/{command.name}", command.summary) for command in commands]

    def _choices(self) -> list[Choice]:
        from swecli.commands.models import summary
        from swecli.core.llm.catalog import shown_ref

        choices = [Choice(offer.ref, shown_ref(offer.ref), summary(offer)) for offer in self._offers]
        others = [
            Choice(LOGIN, "Add an API key", "hidden as you type"),
            Choice(DEMO, "See the demo", "scripted model, sample project: no key, no network"),
        ]
        return [*choices[:SHOWN_MODELS], *others, *choices[SHOWN_MODELS:]]

    def _picked(self, value: str) -> None:
        if value == DEMO:
            self._session.take_back(self._session.later.take_all())
            self._session.detach()
        steps = {LOGIN: self._pick_provider, DEMO: self._show_demo}
        self._screen.run_worker(steps[value]() if value in steps else self._try(value))

    async def _try(self, ref: str) -> None:
        from swecli.core.llm.catalog import shown_ref

        self._trying.clear()  # messages sent meanwhile wait
        try:
            with self._screen.activity.beside(f"Testing {safe_line(shown_ref(ref))}…"):
                works, message = await self._program.try_model(ref)
            if works:
                shown = await self._kept(ref, message)
                self.connected()
                self._screen.transcript.show(shown)
                self._session.send(SetModel(ref))
                return
            self._screen.transcript.show((TextBlock(message, "error"),))
        finally:
            self._trying.set()
        if self._screen.dock.panel in (None, self._picker):
            self._offer()

    async def _kept(self, ref: str, message: str) -> tuple[TextBlock, ...]:
        """Make a working model the default of the next start. Returns ``message`` with what came of it."""
        try:
            notice = await asyncio.to_thread(self._program.keep_model, ref)
        except ValueError as error:
            return TextBlock(f"{message}."), TextBlock(f"The next start asks again: {error}", "warning")
        return (TextBlock(f"{message}, {notice[:1].lower()}{notice[1:]}" if notice else f"{message}."),)

    async def reconnect(self) -> None:
        """Offer another key, or another model, after the provider refused the key. Nothing while another panel is open
        or a draft would be hidden."""
        view = self._session.view
        if view is None or view.model is None or self._screen.dock.panel is not None or self._screen.prompt.editor.text:
            return
        provider = safe_line(view.model.provider)
        choices = [
            Choice(LOGIN, f"Enter another key for {provider}", "hidden as you type"),
            Choice(OTHER, "Connect another model", "lists keys and local servers"),
        ]

        def picked(value: str) -> None:
            if value == LOGIN and view.model is not None:
                self._ask_key(view.model.provider)
            else:
                self._screen.run_worker(self._list_models())

        self._screen.dock.show(Picker(f"{provider} refused the key", choices, picked, quit=self._leave))

    async def _list_models(self) -> None:
        with self._screen.activity.beside(LOOKING):
            await self._look()
        if self._screen.dock.panel is None:
            self._offer()

    async def _show_demo(self) -> None:
        await self._session.close()
        self._screen.transcript.clear()
        self._screen.post_message(SessionController.Wanted(self._program.demo))

    async def log_in(self, provider: str = "") -> None:
        """Ask for a provider's key, first for the provider if none is given."""
        problem = await asyncio.to_thread(self._no_key_for, provider) if provider else ""
        if problem:
            self._screen.transcript.show((TextBlock(problem, "error"),), f"/login {provider}")
        elif provider:
            self._ask_key(provider)
        else:
            await self._pick_provider()

    def _no_key_for(self, provider: str) -> str:
        """Why no key can be stored for a provider; empty if one can."""
        try:
            self._program.accounts().find(provider)
        except (ValueError, StartError) as error:
            return str(error)
        return ""

    def _stored(self, provider: str, key: str) -> tuple[str, str]:
        """Store a key. Returns a sentence for the user and the provider's default model, if any."""
        accounts = self._program.accounts()
        return accounts.store(provider, key), accounts.default_of(provider)

    async def _pick_provider(self) -> None:
        try:
            offered = await asyncio.to_thread(lambda: self._program.accounts().offered())
        except StartError as error:
            self._screen.transcript.show((TextBlock(str(error), "error"),), "/login")
            return
        choices = [Choice(name, name, detail) for name, detail in offered]
        self._screen.dock.show(Picker("Add an API key for", choices, self._ask_key))

    def _ask_key(self, provider: str) -> None:
        def done(key: str) -> None:
            self._screen.run_worker(self._store_key(provider, key))

        note = "swecli stores it in the system keyring, or in a file only you can read."
        self._screen.dock.show(SecretPanel(f"Key for {provider}", note, done))

    async def _store_key(self, provider: str, key: str) -> None:
        from swecli.tui.greeting import short_paths

        try:
            message, model = await asyncio.to_thread(self._stored, provider, key)
        except (ValueError, StartError) as error:
            self._screen.transcript.show((TextBlock(str(error), "error"),), f"/login {provider}")
            return
        message = short_paths(message, os.environ.get("HOME", ""))
        view = self._session.view
        unconnected = view is not None and view.model is None
        if unconnected and model:
            message = f"{message} Using {model}, its default; /model selects another."
            self.connected()
            self._screen.transcript.show((TextBlock(message),), f"/login {provider}")
            self._session.send(SetModel(model))
            return
        self._screen.transcript.show((TextBlock(message),), f"/login {provider}")
        if unconnected:
            await self._list_again()

    async def _list_again(self) -> None:
        """Ask the servers again, say which of them still list no models, and show the list."""
        with self._screen.activity.beside(LOOKING):
            await self._look()
        port, view = self._session.port, self._session.view
        if port is None or view is None or view.model is not None:
            return
        if port.offers.unlisted:
            self._screen.transcript.show(
                tuple(TextBlock(safe_line(trouble), "warning") for trouble in port.offers.unlisted)
            )
        if self._screen.dock.panel is None:
            self._offer()

    async def _look(self) -> None:
        port = self._session.port
        self._nearby = await port.offers.nearby() if port is not None else ()
        self._offers = [offer for offer in await port.offers.find() if offer.usable] if port is not None else []
