"""Choosing the model and its effort, and connecting one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from swecli.core.protocol.commands import SetEffort, SetModel
from swecli.safe_text import safe_line
from swecli.tui.known_models import KnownModels
from swecli.tui.main_screen import MainScreen
from swecli.tui.program import Program
from swecli.tui.session_controller import SessionController
from swecli.tui.status_bar import LOOKING

if TYPE_CHECKING:
    from swecli.core.llm.offers import ModelOffer
    from swecli.tui.connect import Connection
    from swecli.tui.dock.picker import Choice


class ModelChoice:
    """Asks the session for a model, and keeps a picked one as the default."""

    def __init__(
        self, screen: MainScreen, session: SessionController, program: Program, clock: Callable[[], float]
    ) -> None:
        """``clock`` is Unix seconds."""
        self._screen = screen
        self._session = session
        self._program = program
        self.known = KnownModels(screen, session, program, clock)
        self.tried = asyncio.Event()
        """Clear while a picked model is being tried: messages wait until it is connected."""
        self.tried.set()

    async def pick(self) -> None:
        """Pick the model: a usable one from the list, or another one by typing. The list opens at once, so that no key
        typed behind the command is lost, and gets the servers' models when they have answered."""
        from swecli.commands.models import omitted, summary
        from swecli.core.llm.catalog import shown_ref
        from swecli.tui.dock.picker import Choice, Picker

        present, port, answered = self.known.current, self._session.port, False

        def picked(value: str) -> None:
            if answered or value in known or "/" in value:
                self.set(value)
            else:  # the command waits for the servers, among whose models it looks for the name
                self._screen.post_message(MainScreen.Wanted(f"/model {value}"))

        def choices(offers: Sequence[ModelOffer]) -> list[Choice]:
            return [
                Choice(ref, shown_ref(ref), "" if offer is None else summary(offer), ref == present)
                for ref, offer in self.known.usable(known, offers).items()
            ]

        with self._screen.activity.beside(LOOKING):
            known = await self.known.names()
            picker = Picker("Model: select one, or type a name", choices(()), picked, free=True)
            self._screen.dock.show(picker)
            offers = await self.known.offers()
        answered = True
        if not picker.is_attached:
            return
        picker.offer(choices(offers))
        if port is None:
            return
        for trouble in port.offers.unlisted:  # whole sentences with a remedy, longer than the line above the list
            port.notice(trouble, "warning")
        if left_out := omitted(port.offers.omitted):
            self._screen.flash(left_out)

    def set(self, ref: str) -> None:
        """Ask the session for a model (``provider/name``), which also becomes the default of the next start; first the
        user, if that costs thoughts of the present one."""
        from swecli.commands.models import switch_offer
        from swecli.tui.dock.confirm import ask

        port = self._session.port
        offer = switch_offer(port, ref) if port is not None else None
        if offer is None:
            self._use(ref)
        else:
            ask(self._screen, self._session, offer.title, offer.yes, lambda: self._use(ref), offer.later)

    def _use(self, ref: str) -> None:
        before = self._session.view
        model = None if before is None else before.model
        self._session.send(SetModel(ref))  # the transcript reports the result
        view = self._session.view
        if view is not None and view.model is not None and view.model is not model:
            self._screen.run_worker(self.keep(view.model.ref))

    async def keep(self, ref: str) -> None:
        """Make a picked model the default and report where that was written."""
        try:
            if message := await asyncio.to_thread(self._program.keep_model, ref):
                self._screen.flash(message)
        except ValueError as error:
            self._screen.flash(f"For this session only: {error}")

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

    def set_effort(self, word: str) -> None:
        """Ask the session for an effort: one of the model's words, or its default."""
        from swecli.commands.models import DEFAULT

        self._session.send(SetEffort(None if word == DEFAULT else word))
        self._screen.activity.flash(f"Effort: {safe_line(word)} (from the next request)")

    def ask_price(self, model: str) -> None:
        """Ask for a model's price. Input that is no price goes to the prompt."""
        from swecli.commands.usage import price_of
        from swecli.tui.dock.picker import Picker

        def typed(text: str) -> None:
            if text.startswith("/"):
                self._screen.post_message(MainScreen.Wanted(text))
            elif price_of(text) is not None or not any(sign.isalpha() for sign in text):
                self._screen.post_message(MainScreen.Wanted(f"/usage price {model} {text}"))
            else:
                self._screen.prompt.receive(text)
                self._screen.activity.flash("Not a price, so it was not sent; it is back in your prompt")

        title = f"Price of {safe_line(model)}, $ per million tokens: input output [cached], such as 3 15 0.3"
        self._screen.dock.show(Picker(title, (), typed, free=True))

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
            self._screen.post_message(MainScreen.Wanted(text))

        return Connection(self._screen, self._session, self._program, self.tried, run)
