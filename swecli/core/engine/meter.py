"""The meter: the size of the context, problems that it shows, and what the cache gave to a request."""

from __future__ import annotations

from msgspec.structs import replace

from swecli.core.context_management.budget import much_fixed, no_room, over_limit
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.projection import project
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Toolset
from swecli.core.engine.snapshots import SessionSnapshots
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import ContextMeasured, Notice, NoticeLevel
from swecli.core.protocol.messages import Message

FILLING = "context is filling"
"""What the warning is about that is told again only after the context has been smaller, whatever run finds it."""


class Meter:
    """Measures the context of the current model for every display. Nothing is measured without a model."""

    def __init__(
        self, toolset: Toolset, recorder: Recorder, connection: Connection, snapshots: SessionSnapshots
    ) -> None:
        self._context = toolset.context
        self._tools = toolset.tools
        self._recorder = recorder
        self._connection = connection
        self._snapshots = snapshots
        self.in_doubt = False
        """Whether the newest measure shows a problem based only on estimates."""

    def resume(self, model: str) -> None:
        """Begin with the last known size of a resumed session. ``model`` is the user's name for the model."""
        self._context.continue_warned(FILLING in self._recorder.state.told)
        if self._connection.client is not None and self._recorder.ledger.view:
            self._snapshots.adopt_sizes(self._connection.client, model)

    def measure(self) -> None:
        """Publish the size."""
        if (budget := self.size()) is not None:
            self.publish(budget)

    def size(self) -> Budget | None:
        """The measure of the present context; None without a model."""
        client, ledger = self._connection.client, self._recorder.ledger
        if client is None:
            return None
        self._context.bind(ledger, client.info)
        return self._context.measure(project(ledger), client.info)

    def publish(self, budget: Budget, *, exact: bool = False) -> None:
        """Publish this size; ``exact``: its texts were counted, whatever its source. It is an estimate while servers
        start whose tools may still join."""
        client, context = self._connection.client, self._context
        if client is None:
            return
        if budget.source == "measured" and self._tools.pending:
            budget = replace(budget, source="estimated")
        self._recorder.emit(ContextMeasured(budget))
        self.in_doubt = self._check(budget, client.info.ref, exact=exact or context.monitor.exact)
        for text in context.cut_instructions(client.info):
            about = f"{text.partition(' ')[0]} cut: {client.info.ref}"
            self._recorder.tell_once(Notice(text, "warning", "instructions", about=about))

    async def count_in_doubt(self) -> None:
        """Count exactly if the newest measure shows a problem based only on estimates."""
        client = self._connection.client
        if self.in_doubt and client is not None:
            await self._context.count_exactly(project(self._recorder.ledger), client.info)
            if (budget := self.size()) is not None:
                self.publish(budget, exact=True)

    def _check(self, budget: Budget, model: str, *, exact: bool) -> bool:
        """Report problems in the measure of a request to ``model``, each once. An estimate (not ``exact``) is not
        reported; True if it shows a problem."""
        trouble, much, over = no_room(budget), much_fixed(budget), over_limit(budget)
        if not exact:
            return bool(trouble or much or over)

        def tell(what: str, text: str, level: NoticeLevel = "warning") -> None:
            self._recorder.tell_once(Notice(text, level, "context", about=f"{what}: {model}"))

        if trouble:
            tell("no room", trouble, "error")
            return False
        if much:
            tell("fixed part", much)
        for text in over:
            tell(text.partition(":")[0], text)
        return False

    def report_cache_miss(self, prepared: PreparedRequest, message: Message, at: float) -> None:
        """Compare an answered request with the previous one; emit a cache miss if there was one, and the request's
        beginning if it is new. ``at`` is the send time in Unix seconds."""
        recorder, client = self._recorder, self._connection.client
        if client is None:
            return
        usage, report = (message.response.usage, message.response.report) if message.response else (None, None)
        reduced = report.reduced if report is not None else ""
        miss = self._context.cache_miss(prepared.request, usage, client.info, recorder.ledger.view, at, reduced)
        if miss is not None:
            recorder.emit(miss.event)
        prefix = self._context.sent_prefix
        if prefix is not None and prefix != recorder.cache.prefix:
            recorder.emit(prefix)
