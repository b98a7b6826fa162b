"""Questions to a model beside the conversation: those of slash commands, retrieval and playbook, and the user's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import aclosing

from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompts import note, read_prompt
from swecli.core.engine.model_access import Connection
from swecli.core.engine.model_call import retry_delay
from swecli.core.engine.models import ModelChoice
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Time
from swecli.core.engine.settings import Settings
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelRequest, ProviderError, SystemBlock
from swecli.core.protocol.events import Notice, SideAnswered
from swecli.core.protocol.messages import Message, TextPart, Usage


class SideQuestions:
    """Asks without a place in the conversation, with the retries of a turn's requests. A failure is reported in a
    Notice; the price of an answer is recorded."""

    def __init__(
        self,
        gateway: RequestGateway,
        settings: Settings,
        time: Time,
        price: Callable[[str, Usage], str | None],
        recorder: Recorder,
        connection: Connection,
        models: ModelChoice,
    ) -> None:
        self._gateway = gateway
        self._settings = settings
        self._time = time
        self._price = price
        self._recorder = recorder
        self._connection = connection
        self._models = models

    async def ask(self, system: str, prompt: str, *, max_output_tokens: int = 2000) -> str | None:
        """Ask the small model one question without the conversation. None without a model or after a failure."""
        client = self._models.beside("small")
        if client is None:
            return None
        request = ModelRequest(
            system=(SystemBlock(system),),
            tools=(),
            messages=(Message("user", (TextPart(prompt),), "question"),),
            max_output_tokens=max_output_tokens,
            session=self._recorder.session,
        )
        return await self._answer(request, client)

    async def ask_briefly(self, system: str, prompt: str) -> str | None:
        """``ask`` for an answer of a few words."""
        return await self.ask(system, prompt, max_output_tokens=200)

    async def ask_aside(self, question: str) -> str | None:
        """Ask the current model one question about the conversation, even while a turn runs. Neither question nor
        answer joins the conversation. None as for ``ask``."""
        client = self._connection.client
        if client is None:
            text = "No model is connected; the question was not sent."
            self._recorder.emit(Notice(text, "error", "session", "Use /model; see /help."))
            return None
        asked = Message("user", (TextPart(f"{note(read_prompt('aside'))}\n{question}"),), "aside")
        messages = (*project(self._recorder.ledger), asked)
        request = self._gateway.context.aside(messages, client.info, self._recorder.session)
        return await self._answer(request, client)

    async def _answer(self, request: ModelRequest, client: ModelClient) -> str | None:
        recorder = self._recorder
        for attempt in itertools.count(1):
            result = await self._asked(request, client)
            if isinstance(result, Message):
                usage = result.response.usage if result.response else None
                cost = self._price(client.info.ref, usage) if usage is not None else None
                recorder.emit(SideAnswered("question", client.info.ref, usage, cost))
                return result.text or None
            delay = retry_delay(result, attempt, self._settings.now.limits.max_retries, self._time.jitter())
            if delay is None:
                text = f"{client.info.ref} could not answer: {result.message}"
                recorder.emit(Notice(text, "warning", "model", result.hint))
                return None
            await self._time.sleep(delay)
        return None

    async def _asked(self, request: ModelRequest, client: ModelClient) -> Message | ProviderError:
        """One attempt. A partial answer is dropped: none of it was shown."""
        async with aclosing(self._gateway.send(client, request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.message
                if isinstance(event, Failed):
                    return event.error
        return ProviderError("truncated", "the answer ended without its end marker")
