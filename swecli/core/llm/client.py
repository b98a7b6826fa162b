"""The model client: one request as a stream of neutral events, repeated without the parts that a server refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.adjustments import adjust
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.compatibility import Compatibility
from swecli.core.llm.endless import EndlessText
from swecli.core.llm.errors import WireError, read_body, to_provider_error
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.json_values import as_list, as_object, encoded
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.base import Decoder, ReasoningDraft, WireRequest
from swecli.core.llm.protocols.registry import decoder_for, request_builder
from swecli.core.llm.secrets import Masker, key_values
from swecli.core.llm.transport import ENCODING_HINT, Fetcher, HttpResponse, Transport
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ProviderError,
    StreamEvent,
    StreamNotice,
)
from swecli.core.llm.watchdog import Watchdog

MOST_IN_TOKEN, LEAST_IN_TOKEN = 40, 4
"""Characters in a token, and tokens of a character, that a tokenizer can have."""
NO_PREWARM = "the server fills no cache ahead of a message"
CHARACTERS_PER_TOKEN = 16
SHORTEST_LIMIT, LONGEST_LIMIT = 100_000, 8_000_000
"""Bounds, in characters, for reading one answer, whatever its own limit: far more than its tokens need."""
LARGEST_EVENT = 64_000_000
"""Bytes."""
_MAX_HTML = 300
"""Characters of a web page after which reading stops."""
_MAX_CHANGES = 6
"""Limit on changing and repeating a request after complaints about optional parts."""


class _Refused(Struct, frozen=True):
    """The server answered with an error: its status is one, or nothing else came in the stream."""

    error: WireError


class HttpModelClient:
    def __init__(
        self, config: ClientConfig, dump: ExchangeDump | None = None, learn: Callable[[str], str] = lambda _: ""
    ) -> None:
        """``dump`` receives every request and answer, with keys masked. ``learn`` stores the name of a field that the
        server refused, for later sessions, and returns a sentence if that failed."""
        self.compatibility = Compatibility(config, learn)
        self._build = request_builder(config.target.origin.protocol)
        self._translations = Translations()
        self._dump = dump
        self._transport = Transport(config.base_url, config.timeouts)
        self._context = config.error_context
        self._masker = Masker(key_values(config.headers), shapes=False)

    @property
    def info(self) -> ModelInfo:
        return self.compatibility.config.info

    @property
    def config(self) -> ClientConfig:
        return self.compatibility.config

    async def close(self) -> None:
        await self._transport.close()

    async def count_tokens(self, text: str) -> int | None:
        """The tokens of a text by the server's own tokenizer; None without one, or if its answer makes no sense. Only
        llama.cpp has one, which also tells its progress."""
        config = self.config
        if not config.info.tells_progress:
            return None
        async with aclosing(Fetcher(config.base_url.removesuffix("/v1"), config.headers)) as fetcher:
            reply = await fetcher.post("/tokenize", {"content": text})
        tokens = len(as_list(as_object(reply.value).get("tokens")))
        return tokens if len(text) / MOST_IN_TOKEN <= tokens <= LEAST_IN_TOKEN * len(text) else None

    async def busy_slots(self) -> tuple[int, int] | None:
        """How many of the server's slots work on requests, and how many it has; None if it does not tell."""
        config = self.config
        if not config.info.tells_slots:
            return None
        async with aclosing(Fetcher(config.base_url.removesuffix("/v1"), config.headers)) as fetcher:
            slots = as_list((await fetcher.get("/slots")).value)
        busy = [as_object(slot).get("is_processing") is True for slot in slots]
        return (sum(busy), len(busy)) if busy else None

    def wire_request(self, request: ModelRequest) -> WireRequest:
        server = self.compatibility
        wire = self._build(server.fit(request), server.config.target, self._translations)
        return adjust(wire, server.adjustments) if server.adjustments else wire

    def headers(self, wire: WireRequest) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "swecli",
            **self.config.headers,
            **wire.headers,
        }

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """One attempt; see ``ModelClient.stream``. A refused request is repeated with the cause changed: without an
        optional parameter, with tools as text, with a sentence instead of each image, or without a part of the
        conversation."""
        from swecli.core.llm.text_tools import TextCallStream

        server = self.compatibility
        for sentence in server.news(request):
            yield StreamNotice(sentence)
        names = [tool.name for tool in request.tools]
        calls: TextCallStream | None = None
        for change_number in range(_MAX_CHANGES + 1):
            wire, change = self.wire_request(request), ""
            if request.prewarm and not as_object(wire.body.get("prompt_cache_options")).get("prewarm"):
                yield Failed(ProviderError("bad_request", NO_PREWARM))  # the request would be answered
                return
            reads_calls, info = server.reads_calls, server.config.info
            most_tokens = request.max_output_tokens or info.max_output or info.window or 0
            async with aclosing(self._attempt(wire, most_tokens)) as events:
                async for event in events:
                    if calls is None and names and reads_calls:
                        calls = TextCallStream(names)
                    if isinstance(event, _Refused):
                        if change_number < _MAX_CHANGES:
                            change = server.adapt(event.error, wire, request, self.wire_request)
                        error = to_provider_error(event.error, self._context)
                        event = StreamNotice(self._masker.mask_cut(change)) if change else Failed(error)
                    if isinstance(event, Finished | Failed):
                        event, sentences = server.settle(event, wire, request)
                        for sentence in sentences:
                            yield StreamNotice(sentence)
                    for made in calls.feed(event) if calls is not None else (event,):
                        yield self._without_keys(made) if isinstance(made, Failed) else made
            if not change:
                return

    def _without_keys(self, failed: Failed) -> Failed:
        """Mask keys in an error: some servers quote a refused key, and errors are shown and stored."""
        error = failed.error
        message, hint = self._masker.mask_cut(error.message), self._masker.mask_cut(error.hint)
        if (message, hint) == (error.message, error.hint):
            return failed
        return replace(failed, error=dataclasses.replace(error, message=message, hint=hint))

    def _decoder(self) -> Decoder:
        origin = self.config.target.origin
        return decoder_for(origin.protocol, origin, self.config.target.dialect.think_tags, self._context)

    async def _attempt(self, wire: WireRequest, most_tokens: int) -> AsyncGenerator[StreamEvent | _Refused, None]:
        """Send a request and decode its answer, which has at most ``most_tokens`` (0: unknown)."""
        decoder: Decoder | None = None
        watchdog = Watchdog(self.config.timeouts)
        response: HttpResponse | None = None
        url, body = self.config.base_url + wire.path, encoded(wire.body)
        headers, ended = self.headers(wire), "interrupted"
        exchange = dump.begin(self.config.shown_url + wire.path, headers, body) if (dump := self._dump) else None
        try:
            response = await self._sent(watchdog, url, headers, body)
            if exchange is not None:
                exchange.head(response.status, response.headers)
                response.watch = exchange.body
            if not 200 <= response.status < 300:
                error = await self._read_error(response)
                ended = ""
                yield _Refused(error)
                return
            if trouble := response.encoding_trouble:
                raise ProviderError("protocol", f"the answer {trouble}", hint=ENCODING_HINT)
            decoder = self._decoder()
            async with aclosing(self._decode(decoder, response, watchdog, most_tokens)) as events:
                async for event in events:
                    refused = decoder.answer.error if isinstance(event, Failed) and event.message is None else None
                    yield event if refused is None or refused.kind == "protocol" else _Refused(refused)
            ended = ""
        except ProviderError as error:
            ended = str(error)
            for event in (decoder or self._decoder()).abort(error):
                yield event
        finally:
            watchdog.close()
            whole = decoder is not None and decoder.answer.outcome == "completed"
            if exchange is not None:
                exchange.close("" if whole else ended)
            if response is not None and whole:
                self._transport.release(response)
            elif response is not None:
                await response.close()

    async def _sent(self, watchdog: Watchdog, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request; once more with renewed headers if the server refuses those that changed meanwhile."""
        known = self.config.authorisation
        if known is None:
            return await watchdog.wait(self._transport.send(url, headers, body))
        own = await known.headers()
        response = await watchdog.wait(self._transport.send(url, {**headers, **own}, body))
        if response.status == 401 and (renewed := await known.after_refusal(own)) is not None:
            await response.close()
            response = await watchdog.wait(self._transport.send(url, {**headers, **renewed}, body))
        known.answered(response.headers)
        return response

    async def _read_error(self, response: HttpResponse) -> WireError:
        trouble = response.encoding_trouble
        text = b"" if trouble else await response.read_error_body(self.config.timeouts.error_body)
        error = read_body(response.status, response.headers, text, host=self.config.target.origin.host)
        return replace(error, message=f"the error {trouble}") if trouble else error

    async def _decode(
        self, decoder: Decoder, response: HttpResponse, watchdog: Watchdog, most_tokens: int
    ) -> AsyncGenerator[StreamEvent, None]:
        body = BodyParser(response.headers.get("content-type", ""))
        endless = EndlessText.of_answer(most_tokens)
        longest = min(max(most_tokens * CHARACTERS_PER_TOKEN, SHORTEST_LIMIT), LONGEST_LIMIT)
        pending = 0
        while (chunk := await watchdog.piece(response)) is not None:
            wire_events = body.feed(chunk)
            pending = 0 if wire_events else pending + len(chunk)
            if pending > LARGEST_EVENT:
                raise ProviderError("protocol", f"an event of the answer is larger than {LARGEST_EVENT:,} bytes")
            for wire_event in wire_events:
                before = decoder.answer.changes
                events = decoder.feed(wire_event)
                if decoder.answer.changes != before:
                    last = decoder.answer.last
                    # hidden reasoning may take as long as a first token
                    watchdog.progress(silence=isinstance(last, ReasoningDraft) and not last.chunks)
                    if decoder.stopped:
                        watchdog.end_soon()
                period = next((period for event in events if (period := endless.feed(event))), "")
                if (period or decoder.answer.size > longest) and not decoder.closed:
                    why = "repeated itself" if period else "did not end"
                    events += decoder.cut_off(why)
                    yield StreamNotice(f"The answer {why}; swecli cut it after {decoder.answer.size:,} characters.")
                for event in events:
                    yield event
                if decoder.closed:
                    return
            if body.kind == "html" and len(body.excerpt) >= _MAX_HTML:
                break
        if watchdog.was_enough:
            for event in decoder.end_open():
                yield event
            return
        for wire_event in body.end():
            for event in decoder.feed(wire_event):
                yield event
        for event in decoder.end_of_body(body, told=response.tells_its_end):
            yield event
