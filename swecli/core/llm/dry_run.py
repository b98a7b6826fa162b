"""Dry run: shows the requests instead of sending them to a model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.json_values import compact
from swecli.core.llm.secrets import Masker, key_values, masked_headers
from swecli.core.llm.text import clean
from swecli.core.llm.types import Failed, ModelClient, ModelInfo, ModelRequest, ProviderError, StreamEvent

NOT_SENT = "dry run: the request was not sent"


class DryClient:
    """``ModelClient`` that replaces another one. ``show`` receives each request as a JSON object (method, url, headers,
    body), with possible keys masked."""

    def __init__(self, client: ModelClient, show: Callable[[dict[str, Any]], None]) -> None:
        self._client = client
        self._show = show

    @property
    def info(self) -> ModelInfo:
        return self._client.info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Show the request, without an answer."""
        if isinstance(self._client, HttpModelClient):
            self._show(described(self._client, request))
        yield Failed(ProviderError("bad_request", NOT_SENT))

    async def close(self) -> None:
        await self._client.close()


def described(client: HttpModelClient, request: ModelRequest) -> dict[str, Any]:
    wire = client.wire_request(request)
    headers = client.headers(wire)
    masker = Masker(key_values(headers))
    body = json.loads(masker.mask(clean(compact(wire.body))))
    return {
        "method": "POST",
        "url": masker.mask(client.config.shown_url + wire.path),
        "headers": masked_headers(headers),
        "body": body,
    }
