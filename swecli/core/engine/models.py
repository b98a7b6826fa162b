"""Choice of the answering model: the user's model and effort, fallbacks, and models for side work."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from decimal import Decimal

from swecli.core.context_management.budget import window_of
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.engine.edit_prices import switch_effect, switch_words
from swecli.core.engine.meter import Meter
from swecli.core.engine.model_access import Connection, ModelAccess, ModelUnavailable
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.catalog import shown_ref
from swecli.core.llm.types import ModelClient, ModelInfo, ProviderError
from swecli.core.protocol.events import ModelChanged, ModelPlanned, Notice
from swecli.core.protocol.messages import Usage

READY_SECONDS = 1.0
"""How long a request silently waits for the server's information on the model. If the window would only be assumed
otherwise, the request waits until the server has been asked, and a notice says so."""


class ModelChoice:
    """Connects models and reports them in events. Only between turns, unless stated otherwise."""

    def __init__(
        self,
        access: ModelAccess,
        settings: Settings,
        context: ContextManager,
        report_defect: Callable[[BaseException], None],
        recorder: Recorder,
        connection: Connection,
        meter: Meter,
    ) -> None:
        self._access = access
        self._settings = settings
        self._context = context
        self._report_defect = report_defect
        self._recorder = recorder
        self._connection = connection
        self._meter = meter
        self._asking: asyncio.Task[None] | None = None
        self._skipped: asyncio.Event | None = None
        """Set to stop a request's visible wait for the window; None if none waits."""
        self._waited_for: set[str] = set()
        """Models whose window was already waited for; each is waited for once."""
        self._own_model = ""
        """The user's model while another one replaces it."""
        self._next = 0
        """Index of the fallback to try next."""
        self._rejected = False
        """Whether the server rejected the client's key."""

    def start(self, model: str) -> None:
        state = self._recorder.state
        effort = self._access.effort(self._ref)
        if state.replaced:  # the session ended before the user's model was back
            if effort is None and state.replaced == self._ref:
                effort = state.own_effort
            self.announce(effort)
        elif effort is not None and effort != state.effort:
            self.announce(effort)
        self._check_effort(effort)
        if state.models and state.models[-1][0] >= state.started_seq:
            self._report_new_model()
        self._recall_window()
        self._meter.resume(model)
        self._meter.measure()
        self._ask()

    def _check_effort(self, effort: str | None) -> None:
        """Warn of an effort that the model is known not to have; it is sent all the same, as the knowledge may be
        old."""
        client = self._connection.client
        levels = client.info.efforts if client is not None else None
        if effort is None or levels is None or effort in levels:
            return
        accepts = f"accepts {', '.join(levels)}" if levels else "has no effort levels"
        text = f"{self._ref} may refuse the effort {effort!r}: it {accepts}."
        self._recorder.emit(Notice(text, "warning", "model"))

    @property
    def address(self) -> str:
        """Address of the model's server; empty for the provider's own."""
        return self._connection.client.info.address if self._connection.client is not None else ""

    def choose(self, model: str) -> str | None:
        """Switch to ``provider/name``, an alias, or an unambiguous name. Returns what is wrong, if anything; then
        nothing has changed."""
        before = self._connection.client
        self._own_model, self._next = "", 0
        trouble = self._connection.connect(model)
        if trouble is not None:
            return trouble
        if self._recorder.state.planned_model:
            self._recorder.emit(ModelPlanned())
        self.announce(self._access.effort(self._ref))
        self._meter.measure()
        self._ask(before.info if before is not None and before.info.ref != self._ref else None)
        return None

    def plan(self, model: str) -> str | None:
        """Switch to a model with the next compaction; the present one lets none wait. Returns what is wrong, if
        anything."""
        info = self._connection.look_at(model)
        if info is None:
            return self._connection.trouble(model)
        waits = "" if info.ref == self._ref else info.ref
        self._recorder.emit(ModelPlanned(waits))
        text = f"{waits} answers from the next compaction on." if waits else f"{self._ref} goes on answering."
        hint = f"/compact makes it now; /model {self._ref} keeps the present model." if waits else ""
        self._recorder.emit(Notice(text, "info", "model", hint))
        return None

    def switch_as_planned(self) -> None:
        """Make the switch that waited for a compaction, also in the middle of a turn."""
        model = self._recorder.state.planned_model
        if not model:
            return
        self._recorder.emit(ModelPlanned())
        if (trouble := self.choose(model)) is not None:
            self._recorder.emit(Notice(f"{self._ref} goes on answering: {trouble}", "warning", "model"))

    def fall_back(self, error: ProviderError) -> bool:
        """Switch to the next fallback if the current model is overloaded."""
        if error.kind not in ("overloaded", "rate_limit"):
            return False
        away, chain = self._ref, self._settings.now.fallback
        while self._next < len(chain):
            model = chain[self._next]
            self._next += 1
            if model in (away, self._own_model):
                continue
            trouble = self._connection.connect(model)
            if trouble is not None:
                self._recorder.emit(Notice(f"Fallback {model} is not available: {trouble}", "warning", "model"))
                continue
            self._own_model = self._own_model or away
            why = "is overloaded" if error.kind == "overloaded" else "has reached its rate limit"
            text = f"{away} {why}; {self._ref} answers for the rest of this turn."
            self._recorder.emit(Notice(text, "warning", "model", f"The next turn uses {self._own_model} again."))
            self.announce(self._access.effort(self._ref))
            self._meter.measure()
            self._ask()
            return True
        return False

    def has_fallback(self) -> bool:
        """Whether a fallback for the current model is left to try."""
        return any(model not in (self._ref, self._own_model) for model in self._settings.now.fallback[self._next :])

    def note_failure(self, error: ProviderError) -> None:
        """Remember whether the key was rejected; the next turn then reads it again."""
        self._rejected = error.kind == "auth"

    def lend(self, model: str) -> None:
        """Use another model for this turn, as requested by the command that begins it. If the name is unknown, the
        user's own model answers, with a notice."""
        own = self._ref
        trouble = self._connection.connect(model)
        if trouble is not None:
            text = f"The command requests the model {model}, which is not available; {own} answers."
            self._recorder.emit(Notice(text, "warning", "model", trouble))
        elif self._ref != own:
            self._own_model = own
            self.announce(self._access.effort(self._ref))
            self._meter.measure()
            self._ask()

    def begin_turn(self) -> None:
        """Return to the user's model if a fallback replaced it, and read a rejected key again: the user may have stored
        another one since."""
        own, self._own_model, self._next = self._own_model, "", 0
        rejected, self._rejected = self._rejected, False
        if own:
            self._end_fallback(own)
        if rejected:
            self._renew()

    def _end_fallback(self, own: str) -> None:
        trouble = self._connection.connect(own)
        if trouble is not None:
            self._recorder.emit(Notice(f"Still using {self._ref}: {trouble}", "warning", "model"))
            return
        self.announce(self._recorder.state.own_effort)
        self._meter.measure()
        self._ask()

    def _renew(self) -> None:
        client = self._connection.client
        fresh = self._access.renewed(client) if client is not None else None
        if fresh is not None:
            self._connection.use(fresh)
            self._recall_window()
            self._meter.measure()
            self._ask()

    def _recall_window(self) -> None:
        """Restore the model's window from the earlier run until the server is asked again."""
        client, budget = self._connection.client, self._recorder.state.budget
        newest = next(reversed(self._recorder.ledger.responses.values()), None)
        if client is None or newest is None or newest.origin.model != client.info.name:
            return
        if budget is not None and budget.window_source == "endpoint":
            self._access.windows.recall(client, budget.window, newest.origin)

    async def asked(self) -> None:
        """Wait for the server's information on the model, ``READY_SECONDS`` at most."""
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=READY_SECONDS)

    async def ready(self) -> None:
        """Wait for the server's information on the model, but only briefly if the window is known from elsewhere; later
        information applies from its arrival on."""
        client = self._connection.client
        if client is None:
            return
        if self._asking is None or self._asking.done():
            if not (self._meter.in_doubt or self._access.windows.may_tell(client)):
                return
            self._asking = asyncio.create_task(self._asked(client, None))
        await asyncio.wait({self._asking}, timeout=READY_SECONDS)
        if not self._asking.done() and self._assumes(client.info) and client.info.ref not in self._waited_for:
            self._waited_for.add(client.info.ref)
            await self._wait_for_window(client.info, self._asking)

    def skip(self) -> bool:
        """Stop waiting for the server to report its window. False if nothing waits for it."""
        if self._skipped is None:
            return False
        self._skipped.set()
        return True

    async def _wait_for_window(self, info: ModelInfo, asking: asyncio.Task[None]) -> None:
        """Wait for the real window, because a request too long for it would be cut or refused."""
        assumed = window_of(info, self._context.limits).total
        text = f"Waiting for the server to report the context window of {shown_ref(info.ref)}."
        hint = "" if self._context.unattended else f"Esc continues with {assumed:,} tokens."
        self._recorder.emit(Notice(text, "info", "model", hint))
        self._skipped = asyncio.Event()
        skipped = asyncio.create_task(self._skipped.wait())
        try:
            await asyncio.wait({asking, skipped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            skipped.cancel()
            self._skipped = None
        client = self._connection.client
        if client is not None and self._assumes(client.info):
            text = f"The server has not reported the context window of {shown_ref(info.ref)}."
            setting = shlex.quote(f"models.window.{info.ref}")
            hint = f"Assuming {assumed:,} tokens; `swecli config set {setting} TOKENS` changes this."
            self._recorder.emit(Notice(text, "warning", "model", hint))

    def _assumes(self, info: ModelInfo) -> bool:
        return window_of(info, self._context.limits).source == "assumed"

    async def learn(self, error: ProviderError) -> None:
        """Adopt the window that an overflow error states; may be called in the middle of a turn."""
        client = self._connection.client
        if client is None:
            return
        before = client.info
        news = await self._access.windows.learn(client, error)
        if news:
            self._recorder.emit(Notice(news, "warning", "model"))
        if client.info != before:
            self.announce(self._recorder.state.effort, switched=False)
            self._meter.measure()

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def beside(self, work: str) -> ModelClient | None:
        """Client for side work of this name: its own model's, or the current one."""
        try:
            return self._connection.beside(work) or self._connection.client
        except ModelUnavailable as error:
            text = f"The {work} model is not available; the current model answers: {error}"
            self._recorder.emit(Notice(text, "warning", "model"))
            return self._connection.client

    def _ask(self, replaced: ModelInfo | None = None) -> None:
        """Ask the server about the model; afterwards report its switch from the ``replaced`` one, because the window
        decides on the size of a request."""
        client = self._connection.client
        if client is not None:
            self._asking = asyncio.create_task(self._asked(client, replaced))

    async def _asked(self, client: ModelClient, replaced: ModelInfo | None) -> None:
        before = client.info
        try:
            news = await self._access.windows.ask(client)
        except Exception as error:  # noqa: BLE001 - a defect in the background is reported and ends nothing
            self._report_defect(error)
            news = False
        if client is not self._connection.client:
            return
        if news:
            self.announce(self._recorder.state.effort, switched=False)
            self._meter.measure()
        if replaced is not None:
            self._report_switch(replaced)
        now = client.info
        if before.window_source == "endpoint" == now.window_source and before.window != now.window:
            windows = f"{now.window or 0:,} tokens, not {before.window or 0:,}"
            text = f"{shown_ref(before.ref)} now has a context window of {windows}."
            self._recorder.emit(Notice(text, "info", "model"))
        if now.answering:
            other = shown_ref(f"{now.provider}/{now.answering}")
            text = f"{other} answers: the server has only this model and ignores the name in {shown_ref(now.ref)}."
            hint = "/model connects it by its own name."
            self._recorder.tell_once(Notice(text, "info", "model", hint, about=f"{now.answering} answers {now.ref}"))
        await self._meter.count_in_doubt()

    @property
    def _ref(self) -> str:
        return self._connection.client.info.ref if self._connection.client is not None else ""

    def announce(self, effort: str | None, *, switched: bool = True) -> None:
        """Record the model and the reasoning effort that apply from the next request on."""
        client = self._connection.client
        model = client.info.ref if client is not None else self._recorder.state.model
        window = client.info.window if client is not None else None
        self._recorder.emit(ModelChanged(model, effort, window, switched, self.address, self._own_model))

    def _report_new_model(self) -> None:
        """Report the cost if another model answers than in the session's earlier run."""
        models = self._recorder.state.models
        before = self._connection.look_at(models[-2][1]) if len(models) > 1 else None
        if before is not None and before.ref != self._ref:
            self._report_switch(before)

    def _report_switch(self, before: ModelInfo) -> None:
        """Report a change of servers, so that the user of a private server never leaves it unaware. A switch in the
        middle of a conversation loses the provider's cache: report the cost."""
        if before.address and not self.address:
            text = f"{self._ref} now uses its provider's own address, not {before.address}."
            self._recorder.emit(Notice(text, "warning", "model"))
        client = self._connection.client
        if not self._recorder.ledger.view or client is None:
            return
        effect = switch_effect(self._context, self._access.price, self._recorder, before, client.info)
        price = self._access.price(self._ref, Usage(effect.after, effect.after - effect.rewritten, output_total=0))
        costs = f"about ${Decimal(price):.2f}" if price is not None else "price unknown"
        text = f"Switching models: about {effect.rewritten:,} tokens will be sent uncached ({costs})."
        self._recorder.emit(Notice(text, "info", "model", switch_words(effect, before.ref)))
