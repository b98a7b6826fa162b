"""Which model answers: what the user chose, how much it thinks, and which one does the work beside."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from swecli.core.context_management.budget import window_of
from swecli.core.engine.compaction import Compactions
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Connection, ModelUnavailable, Services
from swecli.core.llm.types import ModelClient, ModelInfo, ProviderError
from swecli.core.protocol.events import ModelChanged, Notice
from swecli.core.protocol.messages import Usage

READY_SECONDS = 1.0
"""How long a request waits in silence for the server to say what it knows of the model. Where the window would only be
assumed otherwise, the request goes on waiting until the server has been asked, and a notice says so."""


class ModelChoice:
    """Connects models and tells of it in events. All of it between turns, unless said otherwise."""

    def __init__(
        self, services: Services, recorder: Recorder, connection: Connection, compactions: Compactions
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._connection = connection
        self._compactions = compactions
        self._asking: asyncio.Task[None] | None = None
        self._skipped: asyncio.Event | None = None
        """While a request waits for the window and a notice says so."""
        self._waited_for: set[str] = set()
        """Models whose window was waited for: once is enough."""
        self._own_model = ""
        """The user's model while another one stands in for it."""
        self._next = 0
        """Of the stand-ins, the one that is asked next."""

    def start(self, model: str) -> None:
        effort = self._services.effort(self._ref)
        if effort is not None and effort != self._recorder.state.effort:
            self.announce(effort)
        self._recall_window()
        self._compactions.adopt_size(self._connection.client, model)
        self.measure()
        self._ask()

    @property
    def address(self) -> str:
        """Where the model is asked; empty where that is its provider's own address."""
        return self._connection.client.info.address if self._connection.client is not None else ""

    def choose(self, model: str) -> str | None:
        """Switch to ``provider/name``, an alias, or a name that says which model it is. Returns what is wrong, if
        anything; then nothing has changed."""
        before = self._connection.client
        self._own_model, self._next = "", 0
        trouble = self._connection.connect(model)
        if trouble is not None:
            return trouble
        self.announce(self._services.effort(self._ref))
        self.measure()
        self._ask()
        if before is not None and before.info.ref != self._ref:
            self._report_switch(before.info)
        return None

    def fall_back(self, error: ProviderError) -> bool:
        """Let the next model of the chain answer, if the current one can't because of its load."""
        if error.kind not in ("overloaded", "rate_limit"):
            return False
        away, chain = self._ref, self._services.fallback
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
            self.announce(self._services.effort(self._ref))
            self.measure()
            self._ask()
            return True
        return False

    def lend(self, model: str) -> None:
        """Let another model answer in this turn, as the command that begins it asks. Where there is none of this name
        the user's own answers, and is said to."""
        own = self._ref
        trouble = self._connection.connect(model)
        if trouble is not None:
            text = f"The command requests the model {model}, which is not available; {own} answers."
            self._recorder.emit(Notice(text, "warning", "model", trouble))
        elif self._ref != own:
            self._own_model = own
            self.announce(self._services.effort(self._ref))
            self.measure()
            self._ask()

    def end_fallback(self) -> None:
        """A turn begins: the user's model answers again, if another one stood in for it."""
        own, self._own_model, self._next = self._own_model, "", 0
        if not own:
            return
        trouble = self._connection.connect(own)
        if trouble is not None:
            self._recorder.emit(Notice(f"Still using {self._ref}: {trouble}", "warning", "model"))
            return
        self.announce(self._services.effort(self._ref))
        self.measure()
        self._ask()

    def _recall_window(self) -> None:
        """A session goes on with the window that its model had, until the server is asked again."""
        client, budget = self._connection.client, self._recorder.state.budget
        newest = next(reversed(self._recorder.ledger.responses.values()), None)
        same = client is not None and newest is not None and newest.origin.model == client.info.name
        if client is not None and same and budget is not None and budget.window_source == "endpoint":
            self._services.windows.recall(client, budget.window)

    async def asked(self) -> None:
        """Wait for the server that is being asked about the model, ``READY_SECONDS`` at most."""
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=READY_SECONDS)

    async def ready(self) -> None:
        """Wait for what the model's server says of it, but not for long where the window is known from elsewhere: what
        comes later counts from then on."""
        client = self._connection.client
        if client is None:
            return
        if self._asking is None or self._asking.done():
            if not (self._compactions.in_doubt or self._services.windows.may_tell(client)):
                return
            self._asking = asyncio.create_task(self._asked(client))
        await asyncio.wait({self._asking}, timeout=READY_SECONDS)
        if not self._asking.done() and self._assumes(client.info) and client.info.ref not in self._waited_for:
            self._waited_for.add(client.info.ref)
            await self._wait_for_window(client.info, self._asking)

    def skip(self) -> bool:
        """Give up waiting for the server to tell its window. False where nothing waits for it."""
        if self._skipped is None:
            return False
        self._skipped.set()
        return True

    async def _wait_for_window(self, info: ModelInfo, asking: asyncio.Task[None]) -> None:
        """A request that is too long for the real window would be cut or refused: better wait than assume one."""
        assumed = window_of(info, self._services.context.limits).total
        text = f"Waiting for the server to report the context window of {info.ref}."
        hint = "" if self._services.context.unattended else f"Esc continues with {assumed:,} tokens."
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
            text = f"The server has not reported the context window of {info.ref}."
            self._recorder.emit(
                Notice(text, "warning", "model", f"Assuming {assumed:,} tokens; set models.window to change this.")
            )

    def _assumes(self, info: ModelInfo) -> bool:
        return window_of(info, self._services.context.limits).source == "assumed"

    async def learn(self, error: ProviderError) -> None:
        """Take in the window that an overflow error states; may be called in the middle of a turn."""
        client = self._connection.client
        if client is None:
            return
        before = client.info
        news = await self._services.windows.learn(client, error)
        if news:
            self._recorder.emit(Notice(news, "warning", "model"))
        if client.info != before:
            self.announce(self._recorder.state.effort, switched=False)
            self.measure()

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def beside(self, work: str) -> ModelClient | None:
        """The client for work of this name beside the conversation: that of its own model, or the current one."""
        try:
            return self._connection.beside(work) or self._connection.client
        except ModelUnavailable as error:
            text = f"The {work} model is not available; the current model answers: {error}"
            self._recorder.emit(Notice(text, "warning", "model"))
            return self._connection.client

    def measure(self) -> None:
        """Publish the size of the context for the current model."""
        if self._connection.client is not None:
            self._compactions.measure(self._connection.client)

    def _ask(self) -> None:
        client = self._connection.client
        if client is not None:
            self._asking = asyncio.create_task(self._asked(client))

    async def _asked(self, client: ModelClient) -> None:
        try:
            news = await self._services.windows.ask(client)
        except Exception as error:  # noqa: BLE001 - a defect in the background is reported, and ends nothing
            self._services.report_defect(error)
            return
        if client is not self._connection.client:
            return
        if news:
            self.announce(self._recorder.state.effort, switched=False)
            self.measure()
        await self._compactions.count_in_doubt(client)

    @property
    def _ref(self) -> str:
        return self._connection.client.info.ref if self._connection.client is not None else ""

    def announce(self, effort: str | None, *, switched: bool = True) -> None:
        """Record which model answers from the next request on, and with which reasoning effort."""
        client = self._connection.client
        model = client.info.ref if client is not None else self._recorder.state.model
        window = client.info.window if client is not None else None
        self._recorder.emit(ModelChanged(model, effort, window, switched, self.address))

    def _report_switch(self, before: ModelInfo) -> None:
        """Whoever talks to a server of their own must not go on elsewhere unaware. A switch in the middle of a
        conversation loses the provider's cache of it: say what that costs."""
        if before.address and not self.address:
            text = f"{self._ref} now uses its provider's own address, not {before.address}."
            self._recorder.emit(Notice(text, "warning", "model"))
        budget = self._recorder.state.budget
        if not self._recorder.ledger.view or budget is None:
            return
        price = self._services.price(self._ref, Usage(input_total=budget.used, output_total=0))
        costs = f"about ${Decimal(price):.2f}" if price is not None else "price unknown"
        text = f"Switching models: about {budget.used:,} tokens will be sent uncached ({costs})."
        self._recorder.emit(Notice(text, "info", "model"))
