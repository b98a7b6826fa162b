"""The next request as it would go to the provider, without sending it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.gateway import with_room_for_answer
from swecli.core.context_management.projection import project, project_with, watermarks
from swecli.core.context_management.wire import WireRequest, adding_up, compact_json, neutral_body, sections_of
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.json_values import compact
from swecli.core.llm.secrets import Masker, key_values
from swecli.core.llm.text import clean
from swecli.core.protocol.messages import Message

ComingNotes = Callable[[], Sequence[Message]]
"""The notes that the next request adds to the conversation."""


class WirePreview:
    """Builds the next request of one session."""

    def __init__(
        self, context: ContextManager, recorder: Recorder, connection: Connection, coming: ComingNotes
    ) -> None:
        self._context = context
        self._recorder = recorder
        self._connection = connection
        self._coming = coming

    def wire(self, draft: str = "") -> WireRequest | None:
        """The next request as it would be sent, with ``draft`` as the user's message, compared with the previous one;
        None without a model. Nothing is sent."""
        client = self._connection.client
        if client is None:
            return None
        recorder, context = self._recorder, self._context
        messages = (*(project_with(recorder.ledger, draft) if draft else project(recorder.ledger)), *self._coming())
        prepared = context.prepare(
            messages,
            info=client.info,
            effort=recorder.state.effort,
            session=recorder.session,
            watermarks=watermarks(recorder.ledger, messages, changed=False),
        )
        request = with_room_for_answer(prepared.request, prepared.budget, client.info)
        before, sizes = context.newest_request, EntrySizes(context.monitor, client.info)
        if isinstance(client, HttpModelClient):
            wire = client.wire_request(request)
            old = client.wire_request(before).body if before is not None else None
            sections = sections_of(wire.body, sizes.text, old)
            sections = adding_up(sections, prepared.budget.used)
            url, text = client.config.shown_url + wire.path, clean(compact(wire.body))
            return WireRequest(url, text, sections, True, prepared.budget.used, before is not None)
        body = neutral_body(request)
        sections = sections_of(body, sizes.text, neutral_body(before) if before is not None else None)
        sections = adding_up(sections, prepared.budget.used)
        return WireRequest("", compact_json(body), sections, False, prepared.budget.used, before is not None)

    def masked(self, text: str) -> str:
        """A text with the connection's keys, and anything that looks like a key, masked."""
        client = self._connection.client
        keys = key_values(client.config.headers) if isinstance(client, HttpModelClient) else frozenset[str]()
        return Masker(keys).mask(text)
