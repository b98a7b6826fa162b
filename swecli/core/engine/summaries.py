"""The summaries of a session: which model writes them, what they cost, and a draft of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from swecli.core.context_management.compaction.plan import Price
from swecli.core.context_management.compaction.quality import cited
from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.compaction.summary import Summarizer, Summary, checked_summary
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.projection import project
from swecli.core.engine.model_access import Connection, ModelUnavailable
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.protocols.anthropic import NAME as ANTHROPIC
from swecli.core.llm.protocols.openai_responses import NAME as OPENAI
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.events import Notice, SideAnswered

NO_EFFECT = "context.provider_summary has no effect"


class Summaries:
    """``cover`` covers keys in what a model wrote; ``price`` as in ``ModelAccess``."""

    def __init__(
        self,
        gateway: RequestGateway,
        settings: Settings,
        price: Price,
        cover: Callable[[str], str],
        recorder: Recorder,
        connection: Connection,
    ) -> None:
        self.gateway = gateway
        self._settings = settings
        self.price = price
        self.cover = cover
        self._recorder = recorder
        self._connection = connection

    @property
    def model(self) -> str | None:
        """The model that writes them in place of the current one."""
        return self._settings.now.side_models.get("summary")

    def other_client(self) -> ModelClient | None:
        """Client of the summary model if one is set; None if the current model writes summaries."""
        try:
            return self._connection.beside("summary")
        except ModelUnavailable as error:
            text = f"The summary model is not available; the current model writes the summary: {error}"
            self._recorder.emit(Notice(text, "info", "context"))
            return None

    def are_by_provider(self, client: ModelClient) -> bool:
        """Whether the provider writes the summary: the user wants it and the model can have it. Says once if not."""
        why = self.why_not_by_provider(client)
        if why:
            about = f"provider_summary: {client.info.ref}"
            self._recorder.tell_once(Notice(f"{NO_EFFECT}: {why}.", "warning", "context", about=about))
        return why == ""

    def why_not_by_provider(self, client: ModelClient) -> str | None:
        """Why the provider does not write the summaries, as a clause; empty if it does, None if it is not asked to."""
        if not self._settings.now.compaction.provider_summary:
            return None
        return why_not_by_provider(client, self._settings.now.side_models)

    async def draft(self, focus: str = "") -> Summary | None:
        """The model's summary of the conversation; changes nothing but the spending. None without a model."""
        client, recorder, gateway = self._connection.client, self._recorder, self.gateway
        if client is None:
            return None
        prepared = gateway.context.prepare(
            project(recorder.ledger), info=client.info, session=recorder.session, effort=recorder.state.effort
        )
        options = self._settings.now.compaction
        summarizer = Summarizer(gateway, client, options.summarization, self.other_client())
        most = min(options.allowances(prepared.budget.effective).summary, prepared.budget.reserve or 500)
        summary = await summarizer.summarize(prepared.request, focus, most, prepared.budget.effective)
        summary = checked_summary(summary, recorder.ledger, self.cover)
        usage, model = summary.total_usage, self.model or client.info.ref
        if usage is not None:
            recorder.emit(SideAnswered("summary", model, usage, self.price(model, usage)))
        for note in summary.notes:
            recorder.emit(Notice(f"Compaction: {note}.", "info", "context"))
        sources = covered(recorder.ledger.view)
        return replace(summary, text=await asyncio.to_thread(cited, summary.text, recorder.ledger, sources))


def writes_sealed(client: ModelClient) -> bool:
    """Whether only the provider can read its summaries."""
    return isinstance(client, HttpModelClient) and client.config.target.origin.protocol == OPENAI


def why_not_by_provider(client: ModelClient, side_models: Mapping[str, str]) -> str:
    """Why the provider of this model writes no summary, as a clause; empty if it can."""
    if (other := side_models.get("summary")) is not None:
        return f"{other} writes the summaries (model.summary)"
    if not isinstance(client, HttpModelClient) or client.config.target.origin.protocol not in (ANTHROPIC, OPENAI):
        return f"only Anthropic and OpenAI's Responses have such summaries, not {client.info.provider}"
    return "" if client.info.capabilities.server_compaction else f"{client.info.ref} has no such summaries"
