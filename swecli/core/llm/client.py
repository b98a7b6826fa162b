"""The model client over HTTP: one attempt per request, whatever the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from swecli.core.llm.blind import NOTICE, has_images, refuses_images, without_images
from swecli.core.llm.errors import ErrorContext, WireError, read_body, to_provider_error
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.json_values import compact
from swecli.core.llm.protocols.base import Decoder, Target, WireRequest
from swecli.core.llm.protocols.drafts import ReasoningDraft
from swecli.core.llm.protocols.registry import decoder_for, request_builder
from swecli.core.llm.quarantine import Quarantine
from swecli.core.llm.recovery import Adjustment, adjust, find_adjustment, refuses_tools
from swecli.core.llm.secrets import Masker, key_values
from swecli.core.llm.text import clean
from swecli.core.llm.text_call_stream import TextCallStream
from swecli.core.llm.text_tools import as_text
from swecli.core.llm.transport import HttpResponse, Timeouts, Transport
from swecli.core.llm.types import (
    Failed,
    ModelInfo,
    ModelRequest,
    ProviderError,
    StreamEvent,
    StreamNotice,
)

_T = TypeVar("_T")
CLEARS = "anthropic-messages"
"""The protocol whose servers can clear old tool results by themselves."""
NO_CLEARING = "context.server_clearing has no effect with this model: only Anthropic's protocol knows it."
_MOST_CHANGES = 6
"""So many times a request is changed and repeated because the server complains about what can be left out."""
_ENOUGH_HTML = 300
"""Characters of a web page after which no more of it is read."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """All that a client needs. ``base_url`` has no slash at its end; ``headers`` carry the key and are kept out
    of representations and messages."""

    info: ModelInfo
    target: Target
    base_url: str
    headers: Mapping[str, str] = field(default_factory=lambda: {}, repr=False)
    key_variables: tuple[str, ...] = ()
    timeouts: Timeouts = Timeouts()


@dataclass(frozen=True, slots=True)
class _Refused:
    """The server answered with an error status."""

    error: WireError


class HttpModelClient:
    """``ModelClient`` over HTTP."""

    def __init__(self, config: ClientConfig, dump: ExchangeDump | None = None) -> None:
        """``dump`` gets every request and answer, with keys masked."""
        self._config = config
        self._dump = dump
        self._told_clearing = False
        self._masker = Masker(key_values(config.headers), shapes=False)
        self._build = request_builder(config.target.origin.protocol)
        self._transport = Transport(config.base_url, config.timeouts)
        self._adjustments: list[Adjustment] = []
        self._quarantine = Quarantine()
        self._no_tools = False
        self._no_images = False
        self._told_blind = False
        self._context = ErrorContext(
            provider=config.info.provider,
            model=config.info.name,
            base_url=config.base_url,
            key_variables=config.key_variables,
        )

    @property
    def info(self) -> ModelInfo:
        return self._config.info

    @property
    def config(self) -> ClientConfig:
        """What the client was made from."""
        return self._config

    def know(self, info: ModelInfo) -> None:
        """More is known of the model: it counts from the next request on."""
        target = replace(self._config.target, window=info.window, max_output=info.max_output)
        self._config = replace(self._config, info=info, target=target)

    async def close(self) -> None:
        """Release connections."""
        await self._transport.close()

    def wire_request(self, request: ModelRequest) -> WireRequest:
        """The request as it would be sent, without the key."""
        return adjust(self._build(self._acceptable(request), self._config.target), self._adjustments)

    def headers(self, wire: WireRequest) -> dict[str, str]:
        """The headers of a request, with the key."""
        return {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "swecli",
            **self._config.headers,
            **wire.headers,
        }

    def _acceptable(self, request: ModelRequest) -> ModelRequest:
        """The request without what the server can't take."""
        if self._tools_as_text:
            request = as_text(request)
        if self._is_blind:
            request = without_images(request)
        return self._quarantine.apply(request)

    @property
    def _tools_as_text(self) -> bool:
        return self._no_tools or not self._config.info.tools or self._config.target.dialect.tool_calls == "text"

    @property
    def _is_blind(self) -> bool:
        return self._no_images or self._config.info.images is False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """One attempt; see ``ModelClient.stream``. A request that is refused because of an optional parameter
        is repeated without it, one that is refused because of its tools with the tools as text, one that is
        refused because of its images with a sentence in place of each, one that is refused because of a part of the
        conversation without that part."""
        if self._is_blind and not self._told_blind and has_images(request):
            self._told_blind = True
            yield StreamNotice(NOTICE)
        if request.server_clearing is not None and not self._told_clearing:
            self._told_clearing = True
            if self._config.target.origin.protocol != CLEARS:
                yield StreamNotice(NO_CLEARING)
        as_text_too = self._tools_as_text or self._config.target.dialect.tool_calls == "auto"
        calls = TextCallStream([tool.name for tool in request.tools]) if request.tools and as_text_too else None
        async with aclosing(self._attempts(request)) as events:
            async for event in events:
                if calls is None and self._tools_as_text and request.tools:
                    calls = TextCallStream([tool.name for tool in request.tools])
                for made in calls.feed(event) if calls is not None else (event,):
                    yield self._without_keys(made) if isinstance(made, Failed) else made

    def _without_keys(self, failed: Failed) -> Failed:
        """Some servers quote the key that they refuse; errors are shown and stored."""
        error = failed.error
        message, hint = self._masker.mask(error.message), self._masker.mask(error.hint)
        return failed if message == error.message else replace(failed, error=replace(error, message=message, hint=hint))

    async def _attempts(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        for change_number in range(_MOST_CHANGES + 1):
            wire = self.wire_request(request)
            change = ""
            async with aclosing(self._attempt(wire)) as events:
                async for event in events:
                    if isinstance(event, _Refused):
                        may_change = change_number < _MOST_CHANGES
                        change = self._adapt(event.error, wire, request) if may_change else ""
                        if not change:
                            yield Failed(to_provider_error(event.error, self._context))
                    else:
                        yield event
            if not change:
                return
            yield StreamNotice(change)

    def _adapt(self, error: WireError, wire: WireRequest, request: ModelRequest) -> str:
        """Change what the server complains about, for this request and all that follow. Returns a sentence for the
        user; empty where nothing can be changed."""
        if request.tools and not self._tools_as_text and refuses_tools(error):
            self._no_tools = True
            return "The model takes no tools; they are described to it in the prompt, and its calls are read as text."
        if has_images(request) and not self._is_blind and refuses_images(error):
            self._no_images = self._told_blind = True
            return NOTICE
        adjustment = find_adjustment(error, wire)
        if adjustment is not None:
            self._adjustments.append(adjustment)
            return adjustment.notice
        build = self._build
        return self._quarantine.take(
            error, self._acceptable(request), lambda part: build(part, self._config.target).body
        )

    async def _attempt(self, wire: WireRequest) -> AsyncGenerator[StreamEvent | _Refused, None]:
        origin = self._config.target.origin
        decoder = decoder_for(origin.protocol, origin, self._config.target.dialect.think_tags, self._context)
        watchdog = _Watchdog(self._config.timeouts)
        response: HttpResponse | None = None
        url, body = self._config.base_url + wire.path, clean(compact(wire.body)).encode()
        headers, ended = self.headers(wire), "interrupted"
        exchange = self._dump.begin(url, headers, body) if self._dump is not None else None
        try:
            response = await watchdog.wait(self._transport.post(url, headers, body))
            if exchange is not None:
                exchange.head(response.status, response.headers)
                response.watch = exchange.body
            if not 200 <= response.status < 300:
                text = await response.read_error_body(self._config.timeouts.error_body)
                ended = ""
                yield _Refused(read_body(response.status, response.headers, text))
                return
            async with aclosing(self._decode(decoder, response, watchdog)) as events:
                async for event in events:
                    yield event
            ended = ""
        except ProviderError as error:
            ended = str(error)
            for event in decoder.abort(error):
                yield event
        finally:
            if exchange is not None:
                exchange.close(ended)
            if response is not None:
                await response.close()

    async def _decode(
        self, decoder: Decoder, response: HttpResponse, watchdog: _Watchdog
    ) -> AsyncGenerator[StreamEvent, None]:
        body = BodyParser(response.headers.get("content-type", ""))
        while (chunk := await watchdog.wait(response.read())) is not None:
            for wire_event in body.feed(chunk):
                before = decoder.answer.changes
                events = decoder.feed(wire_event)
                if decoder.answer.changes != before:
                    watchdog.progress(_thinks_in_secret(decoder))
                for event in events:
                    yield event
                if decoder.closed:
                    return
            if body.kind == "html" and len(body.excerpt) >= _ENOUGH_HTML:
                break
        for wire_event in body.end():
            for event in decoder.feed(wire_event):
                yield event
        for event in decoder.end_of_body(body):
            yield event


def _thinks_in_secret(decoder: Decoder) -> bool:
    """Whether the model is at reasoning of which nothing is shown, which may take as long as a first token."""
    last = decoder.answer.last
    return isinstance(last, ReasoningDraft) and not last.chunks


class _Watchdog:
    """Ends a stream in which nothing happens. Only the time spent waiting for the server counts, and only an
    event that adds to the answer winds it up again."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._limit = self._left = self._first = timeouts.first
        self._idle = timeouts.idle
        self._begun = False

    async def wait(self, answer: Awaitable[_T]) -> _T:
        """The result of ``answer``.

        Raises:
            ProviderError: kind ``stalled``.
        """
        clock = asyncio.get_running_loop().time
        start = clock()
        timeout = asyncio.timeout(self._left)
        try:
            async with timeout:
                return await answer
        except TimeoutError:
            if timeout.expired():
                raise self._error() from None
            raise
        finally:
            if self._left is not None:
                self._left = max(0.0, self._left - (clock() - start))

    def progress(self, silence: bool) -> None:
        """Something came; ``silence`` is to be expected next."""
        self._begun = True
        self._limit = self._left = self._first if silence else self._idle

    def _error(self) -> ProviderError:
        return ProviderError(
            "stalled",
            f"nothing {'more ' if self._begun else ''}came from the model for {self._limit or 0:g} s",
            hint="What arrived is kept; try again, or choose another model with /model.",
        )
