"""The next request of a turn: all that the model must be told is appended, then the whole is projected and measured."""

from __future__ import annotations

from msgspec.structs import replace

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.gateway import over_cap
from swecli.core.context_management.note_topics import SEARCHES, SEARCHES_AGAIN, SEARCHES_USED
from swecli.core.context_management.projection import project, watermarks
from swecli.core.engine.companion import TurnStopped
from swecli.core.engine.core import Core
from swecli.core.engine.model_call import StepAccount
from swecli.core.engine.notes import Statement
from swecli.core.llm.types import ModelClient


class NextRequest:
    """Builds the requests of one turn, whose ``account`` counts the provider's searches."""

    def __init__(self, core: Core, account: StepAccount) -> None:
        self._core = core
        self._context = core.services.toolset.context
        self._recorder = core.recorder
        self._account = account

    async def prepare(self, client: ModelClient, *, changed: bool = False) -> PreparedRequest:
        """The next request, with all that the model must be told; ``changed``: the view has just been cleared or
        compacted."""
        await self._core.companions.before_request()
        self._core.notes.state(self._core.offered.statement)
        if (search := self._context.web_search) is not None:
            used_up = self._searches >= search.max_uses
            self._core.notes.state(
                Statement(SEARCHES, "Web searches", SEARCHES_USED if used_up else "", SEARCHES_AGAIN)
            )
        self._core.notes.flush()
        prepared = self.built(client, changed=changed)
        self.check_left(prepared)  # a summary would be as large as the request
        await self._core.companions.check_request(prepared)
        return prepared

    def with_warning(self, client: ModelClient, prepared: PreparedRequest) -> PreparedRequest:
        """The request; one that passes the warning level for the first time tells the model so."""
        if not self._core.notes.state_usage(prepared):
            return prepared
        self._core.notes.flush()
        return replace(self.built(client), warning=prepared.warning)

    def built(self, client: ModelClient, *, changed: bool = False) -> PreparedRequest:
        self._context.bind(self._recorder.ledger, client.info)
        messages = project(self._recorder.ledger)
        prepared = self._context.prepare(
            messages,
            info=client.info,
            effort=self._recorder.state.effort,
            session=self._recorder.session,
            watermarks=watermarks(self._recorder.ledger, messages, changed=changed),
        )
        if (search := prepared.request.web_search) is None or not self._searches:
            return prepared
        left = replace(search, left=max(0, search.max_uses - self._searches))
        return replace(prepared, request=replace(prepared.request, web_search=left))

    def check_left(self, prepared: PreparedRequest) -> None:
        """Stop before a request that alone would exceed the cap."""
        left, used = self._core.gateway.left(), prepared.budget.used
        cap = self._core.services.settings.now.limits.max_tokens
        if left is not None and used > left:
            reason = f"the next request was not sent: {over_cap(used, left)} of {cap:,}"
            raise TurnStopped("limit", reason, "max_tokens")

    @property
    def _searches(self) -> int:
        """Searches of the provider in this turn so far."""
        usage = self._account.usage
        return (usage.web_searches or 0) if usage is not None else 0
