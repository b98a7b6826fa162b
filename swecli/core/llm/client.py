"""The model client: one request as a stream of neutral events, repeated without the parts that a server refuses."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.images import REDUCER, reduces
from swecli.core.llm.addresses import is_local
from swecli.core.llm.adjustments import Adjustment, adjust, find_adjustment
from swecli.core.llm.answer_formats import REFUSED as FORMAT_REFUSED
from swecli.core.llm.answer_formats import refuses_format
from swecli.core.llm.bound_thoughts import extends, refused_from
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.endless import EndlessText
from swecli.core.llm.errors import WireError, read_body, to_provider_error
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.json_values import JsonObject, as_list, as_object, encoded
from swecli.core.llm.per_message import ListPerMessage
from swecli.core.llm.protocols.base import Decoder, ReasoningDraft, Target, Translations, WireRequest
from swecli.core.llm.protocols.registry import decoder_for, request_builder
from swecli.core.llm.quarantine import Quarantine
from swecli.core.llm.refused_fields import TOOLS_REFUSAL, refused_field, without_field
from swecli.core.llm.role_complaints import suitable_dialect
from swecli.core.llm.secrets import Masker, key_values
from swecli.core.llm.sent_documents import SentDocuments
from swecli.core.llm.sent_images import (
    NOTICE,
    REJECTED,
    ImageFit,
    images_in,
    named,
    refuses_images,
    without_images,
)
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
from swecli.core.llm.web_searches import REFUSED as SEARCH_REFUSED
from swecli.core.llm.web_searches import obstacle, refuses_search
from swecli.core.protocol.messages import ImagePart, Message, ProviderReport
from swecli.lazy_pattern import lazy_pattern

_NO_TOOLS = lazy_pattern(
    r"(?:does not|doesn't) support (?:the use of )?(?:tools?|(?:tool|function)[- ](?:calls?|calling|use))\b"
    r"|(?:\btools?|(?:tool|function)[- ](?:calls?|calling|use))[`'\"]? (?:is|are) not (?:supported|enabled|available)"
    r"|(?:\bfunctions|function calling) (?:(?:is|are) )?(?:unsupported|not support)"
    r"|(?:unsupported|unrecognized|unknown) (?:request )?(?:param|argument|field)[^\n]{0,20}[:'\"` ]tools\b(?!\.)"
    r"|support tool use|tool choice requires --enable-auto-tool-choice|tools param requires --jinja"
    r"|cannot use tools with stream",
    re.IGNORECASE,
)


def refuses_tools(error: WireError) -> bool:
    """Whether the server reports that the model, as configured, can't be given tools."""
    return error.kind in ("bad_request", "not_found", "server") and _NO_TOOLS.search(error.words) is not None


_WITHOUT_FILES = "ollama-chat"
"""The protocol that has no form for a file."""
CLEARS = "anthropic-messages"
"""The protocol with servers that can clear old tool results themselves."""
NO_CLEARING = "context.server_clearing has no effect with this model: only Anthropic's protocol supports it."
_LETS_DROP = "swecli lets the provider drop only that reasoning."
MOST_IN_TOKEN, LEAST_IN_TOKEN = 40, 4
"""Characters in a token, and tokens of a character, that a tokenizer can have."""
REFUSES_TOOLS = "The model does not support tools"
DROPS_TOOLS = "The server left the tools out of the prompt"
NO_PREWARM = "the server fills no cache ahead of a message"
CHANGED = "The server refused a request like one before it; swecli repeats it as it now sends that one."
_OF_FORM = ("bad_request", "not_found", "server", "unknown")
_MAX_CHANGES = 6
"""Limit on changing and repeating a request after complaints about optional parts."""
CHARACTERS_PER_TOKEN = 16
SHORTEST_LIMIT, LONGEST_LIMIT = 100_000, 8_000_000
"""Bounds, in characters, for reading one answer, whatever its own limit."""
LARGEST_EVENT = 64_000_000
"""Bytes."""
_MAX_HTML = 300
"""Characters of a web page after which reading stops."""


_NO_NEWS = ProviderReport()


def _marked(event: Finished | Failed, wire: WireRequest, effort: str | None, news: ProviderReport) -> Finished | Failed:
    """The event with what later requests have to know of this one in its answer: the effort, whether it let the
    provider drop thoughts, and what it left out for the first time."""
    message = event.message
    dropping = "block_binding" in as_object(wire.body.get("thinking"))
    noted = dropping or news != _NO_NEWS
    if message is None or message.response is None or not (noted or effort is not None):
        return event
    report = message.response.report
    if noted:
        report = replace(
            report or ProviderReport(),
            dropping=dropping,
            thoughtless=news.thoughtless,
            refused=news.refused,
            reduced=news.reduced,
        )
    answered = structs.replace(message, response=replace(message.response, report=report, effort=effort))
    return Finished(answered) if isinstance(event, Finished) else replace(event, message=answered)


class _Refused(Struct, frozen=True):
    """The server answered with an error: its status is one, or nothing else came in the stream."""

    error: WireError


def _reads_documents(info: ModelInfo, target: Target) -> bool:
    return info.capabilities.documents and target.origin.protocol != _WITHOUT_FILES


class HttpModelClient:
    def __init__(
        self, config: ClientConfig, dump: ExchangeDump | None = None, learn: Callable[[str], str] = lambda _: ""
    ) -> None:
        """``dump`` receives every request and answer, with keys masked. ``learn`` stores the name of a field that the
        server refused, for later sessions, and returns a sentence if that failed."""
        self._learn = learn
        self._accepted: JsonObject | None = None
        """Body of the newest request that was answered."""
        self._rewriting = ""
        """A clause if the server sees other messages than it was sent."""
        self._config: ClientConfig = config
        self._dump = dump
        self._told_clearing = False
        self._masker = Masker(key_values(config.headers), shapes=False)
        self._build = request_builder(config.target.origin.protocol)
        self._translations = Translations()
        self._transport = Transport(config.base_url, config.timeouts)
        self._adjustments: list[Adjustment] = []
        self._quarantine = Quarantine(config.target.refused, config.target.origin.host)
        self._images = ListPerMessage(images_in)
        self._image_fit = ImageFit(config.target.dialect.images)
        self._told_images: set[str] = set()
        self._documents = SentDocuments(reads=_reads_documents(config.info, config.target))
        self._no_tools = False
        self._no_images = False
        self._told_blind = False
        self._no_format = False
        self._no_search = self._told_search = False
        self._context = config.error_context

    @property
    def info(self) -> ModelInfo:
        return self._config.info

    @property
    def config(self) -> ClientConfig:
        return self._config

    def know(self, info: ModelInfo) -> None:
        """Update the model's data, from the next request on."""
        target = replace(
            self._config.target,
            window=info.window,
            max_output=info.max_output,
            capabilities=info.capabilities,
            tells_progress=info.tells_progress,
        )
        for refused in target.refused:  # in this session, whatever the tables say
            target = without_field(target, refused)
        info = replace(info, capabilities=target.capabilities, tools=info.tools and not self._no_tools)
        self._config = replace(self._config, info=info, target=target)
        self._documents.reads = _reads_documents(info, target)

    async def close(self) -> None:
        await self._transport.close()

    async def count_tokens(self, text: str) -> int | None:
        """The tokens of a text by the server's own tokenizer; None without one, or if its answer makes no sense. Only
        llama.cpp has one, which also tells its progress."""
        config = self._config
        if not config.info.tells_progress:
            return None
        fetcher = Fetcher(config.base_url.removesuffix("/v1"), config.headers)
        try:
            reply = await fetcher.post("/tokenize", {"content": text})
        finally:
            await fetcher.close()
        tokens = len(as_list(as_object(reply.value).get("tokens")))
        return tokens if len(text) / MOST_IN_TOKEN <= tokens <= LEAST_IN_TOKEN * len(text) else None

    async def busy_slots(self) -> tuple[int, int] | None:
        """How many of the server's slots work on requests, and how many it has; None if it does not tell."""
        config = self._config
        if not config.info.tells_slots:
            return None
        fetcher = Fetcher(config.base_url.removesuffix("/v1"), config.headers)
        try:
            slots = as_list((await fetcher.get("/slots")).value)
        finally:
            await fetcher.close()
        busy = [as_object(slot).get("is_processing") is True for slot in slots]
        return (sum(busy), len(busy)) if busy else None

    def wire_request(self, request: ModelRequest) -> WireRequest:
        wire = self._build(self._acceptable(request), self._config.target, self._translations)
        return adjust(wire, self._adjustments) if self._adjustments else wire

    def headers(self, wire: WireRequest) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "swecli",
            **self._config.headers,
            **wire.headers,
        }

    def _acceptable(self, request: ModelRequest) -> ModelRequest:
        request = self._documents.apply(request)
        if self._no_format and request.answer_format is not None:
            request = replace(request, answer_format=None)
        if self._no_search and request.web_search is not None:
            request = replace(request, web_search=None)
        if self._tools_as_text:
            from swecli.core.llm.text_tools import as_text

            request = as_text(request)
        images = self._images.all_of(request.messages)
        if not images:
            return self._quarantine.apply(request)
        if self._is_blind:
            return self._quarantine.apply(without_images(request))
        reasons = self._image_fit.reasons(images)
        return self._quarantine.apply(without_images(request, lambda image: reasons.get(image.data, "")))

    @property
    def _tools_as_text(self) -> bool:
        return self._no_tools or not self._config.info.tools or self._config.target.dialect.tool_calls == "text"

    def _drops_tools(self, body: JsonObject, answer: Message) -> bool:
        """Whether the first answer of a local server shows that it drops tools; Ollama names models without them."""
        from swecli.core.llm.text_tools import tools_dropped

        config = self._config
        is_first = self._accepted is None and config.target.origin.protocol == "openai-chat"
        return is_first and is_local(config.base_url) and tools_dropped(body, answer)

    @property
    def _is_blind(self) -> bool:
        return self._no_images or self._config.info.images is False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """One attempt; see ``ModelClient.stream``. A refused request is repeated with the cause changed: without an
        optional parameter, with tools as text, with a sentence instead of each image, or without a part of the
        conversation."""
        from swecli.core.llm.text_tools import TextCallStream, uncounted

        if self._is_blind and not self._told_blind and self._images.all_of(request.messages):
            self._told_blind = True
            yield StreamNotice(NOTICE)
        for sentence in (*self._unfit_images(request), *self._documents.news(request)):
            yield StreamNotice(sentence)
        if request.server_clearing is not None and not self._told_clearing:
            self._told_clearing = True
            if self._config.target.origin.protocol != CLEARS:
                yield StreamNotice(NO_CLEARING)
        if (wish := request.web_search) is not None and not self._told_search:
            self._told_search = True
            if why := obstacle(wish, self._config.target, with_tools=bool(request.tools)):
                yield StreamNotice(f"web_search has no effect here: {why}.")
        names = [tool.name for tool in request.tools]
        calls: TextCallStream | None = None
        for change_number in range(_MAX_CHANGES + 1):
            wire, change = self.wire_request(request), ""
            if request.prewarm and not as_object(wire.body.get("prompt_cache_options")).get("prewarm"):
                yield Failed(ProviderError("bad_request", NO_PREWARM))  # the request would be answered
                return
            reads_calls = self._config.target.dialect.tool_calls == "auto" or self._tools_as_text
            async with aclosing(self._attempt(wire, request)) as events:
                async for event in events:
                    if calls is None and names and reads_calls:
                        calls = TextCallStream(names)
                    if isinstance(event, _Refused):
                        change = self._adapt(event.error, wire, request) if change_number < _MAX_CHANGES else ""
                        error = to_provider_error(event.error, self._context)
                        event = StreamNotice(self._masker.mask_cut(change)) if change else Failed(error)
                    if isinstance(event, Finished | Failed):
                        whole, sent = isinstance(event, Finished), self._acceptable(request)
                        for name in self._quarantine.settle(self._images.all_of(sent.messages), answered=whole):
                            if trouble := self._learn(name):
                                yield StreamNotice(trouble)
                        news = self._quarantine.to_record(request, sent) if whole else _NO_NEWS
                        if whole and self._rewriting and not news.reduced:
                            news = replace(news, reduced=self._rewriting)
                        event = _marked(event, wire, request.effort, news)
                        if isinstance(event, Finished):
                            if self._drops_tools(wire.body, event.message):
                                yield StreamNotice(self._describe_tools(DROPS_TOOLS))
                                event = Finished(uncounted(event.message))
                            self._accepted = wire.body
                            self._documents.settle(sent)
                    for made in calls.feed(event) if calls is not None else (event,):
                        yield self._without_keys(made) if isinstance(made, Failed) else made
            if not change:
                return

    def _unfit_images(self, request: ModelRequest) -> list[str]:
        """A sentence for each image that exceeds the server's limits, once."""
        images = self._images.all_of(request.messages)
        if self._is_blind or not images:
            return []
        reasons = self._image_fit.reasons(images)
        earlier = {image.data for image in images if self._quarantine.refused_earlier(image)}
        reasons |= dict.fromkeys(earlier, f"{REJECTED} in an earlier request")
        new = [image for image in images if image.data in reasons and image.data not in self._told_images]
        self._told_images.update(image.data for image in new)
        by_reason: dict[str, list[ImagePart]] = {}
        for image in new:
            by_reason.setdefault(reasons[image.data], []).append(image)
        hint = "" if reduces() else f" ({REDUCER} scales large images down)"
        return [
            f"Not sent: {named(images)}: {reason}{'' if reason.startswith(REJECTED) else hint}."
            for reason, images in by_reason.items()
        ]

    def _without_keys(self, failed: Failed) -> Failed:
        """Mask keys in an error: some servers quote a refused key, and errors are shown and stored."""
        error = failed.error
        message, hint = self._masker.mask_cut(error.message), self._masker.mask_cut(error.hint)
        if (message, hint) == (error.message, error.hint):
            return failed
        return replace(failed, error=dataclasses.replace(error, message=message, hint=hint))

    def _adapt(self, error: WireError, wire: WireRequest, request: ModelRequest) -> str:
        """Change the cause of the server's complaint, for this and all later requests. Returns a sentence for the user;
        empty if nothing can be changed."""
        if error.kind in _OF_FORM and self.wire_request(request).body != wire.body:  # by a request at the same time
            return CHANGED
        if field := refused_field(error, wire):
            return self._forgo(field)
        if request.web_search is not None and not self._no_search and refuses_search(error):
            self._no_search = True
            if self.wire_request(request).body != wire.body:
                return SEARCH_REFUSED.format(error.message[:200])
        if request.answer_format is not None and not self._no_format and refuses_format(error):
            self._no_format = True
            if self.wire_request(request).body != wire.body:
                return FORMAT_REFUSED.format(error.message[:200])
        if request.tools and not self._tools_as_text and refuses_tools(error):
            return self._describe_tools(REFUSES_TOOLS)
        if not self._is_blind and self._images.all_of(request.messages) and refuses_images(error):
            self._no_images = self._told_blind = True
            return NOTICE
        if dropping := self._let_drop(error, wire, request):
            return dropping
        if (roles := self._change_roles(error, wire, request)) != "":
            return roles
        if (adjustment := find_adjustment(error, wire)) is not None:
            self._adjustments.append(adjustment)
            return adjustment.notice
        sent = self._acceptable(request)
        return (
            self._documents.take(error, sent)
            or self._quarantine.take(error, sent, self._body)
            or self._quarantine.suspect(error, sent)
            or self._documents.suspect(error, sent)
        )

    def _forgo(self, field: str) -> str:
        """Send requests without a field, in this session and in later ones."""
        target = without_field(self._config.target, field)
        info = replace(self._config.info, capabilities=target.capabilities)
        self._config = replace(self._config, target=target, info=info)
        trouble = self._learn(field)
        return f"{target.origin.host} does not know {field}; swecli no longer sends it. {trouble}".rstrip()

    def _describe_tools(self, why: str) -> str:
        """Send tools as text, in this session and in later ones."""
        self._no_tools = True
        self._config = replace(self._config, info=replace(self._config.info, tools=False))
        trouble = self._learn(TOOLS_REFUSAL + self._config.target.origin.model)
        return f"{why}; the prompt describes them from now on, and swecli reads calls from the text. {trouble}".rstrip()

    def _let_drop(self, error: WireError, wire: WireRequest, request: ModelRequest) -> str:
        """Let the provider drop the thoughts that no longer fit, instead of refusing the request for them."""
        target = self._config.target
        controls = target.origin.protocol == CLEARS and target.dialect.effort == "output_config"
        if not controls or target.lets_drop(request.messages):
            return ""
        dropping = replace(target, drops_thoughts=True)
        if not dropping.lets_drop(()) or refused_from(error, self._acceptable(request), self._body) is None:
            return ""
        self._config = replace(self._config, target=dropping)
        if self._accepted is not None and extends(self._accepted, wire.body):
            self._rewriting = f"{target.origin.host} changes messages on their way"
            return f"{self._rewriting}, so the model loses its earlier reasoning. {_LETS_DROP}"
        return f"Earlier messages changed, so the model can't use its reasoning behind them. {_LETS_DROP}"

    def _body(self, request: ModelRequest) -> JsonObject:
        return self._build(request, self._config.target).body

    def _change_roles(self, error: WireError, wire: WireRequest, request: ModelRequest) -> str:
        """Send messages in the roles that the server accepts. A remedy that leaves this request as it was is no reason
        for another attempt: the next one follows at once."""
        as_text_before = self._tools_as_text
        before: ClientConfig = self._config
        dialect = suitable_dialect(error, before.target.dialect)
        while dialect is not None:
            self._config = replace(before, target=replace(before.target, dialect=dialect))
            if self.wire_request(request).body != wire.body:
                break
            dialect = suitable_dialect(error, dialect)
        if dialect is None:
            self._config = before
            return ""
        told = error.words[:200].strip()
        if self._tools_as_text and not as_text_before:
            return f"The server has no role for results; the prompt now describes the tools instead: {told}"
        return f"The server rejected the roles of messages; swecli now sends other ones: {told}"

    def _longest(self, request: ModelRequest) -> int:
        """Characters after which an answer is cut off: far more than its token limit allows."""
        return min(max(self._most_tokens(request) * CHARACTERS_PER_TOKEN, SHORTEST_LIMIT), LONGEST_LIMIT)

    def _most_tokens(self, request: ModelRequest) -> int:
        """Upper bound of an answer's tokens; 0 if unknown."""
        return request.max_output_tokens or self._config.info.max_output or self._config.info.window or 0

    def _decoder(self) -> Decoder:
        origin = self._config.target.origin
        return decoder_for(origin.protocol, origin, self._config.target.dialect.think_tags, self._context)

    async def _attempt(self, wire: WireRequest, request: ModelRequest) -> AsyncGenerator[StreamEvent | _Refused, None]:
        decoder: Decoder | None = None
        watchdog = Watchdog(self._config.timeouts)
        response: HttpResponse | None = None
        url, body = self._config.base_url + wire.path, encoded(wire.body)
        headers, ended = self.headers(wire), "interrupted"
        exchange = dump.begin(self._config.shown_url + wire.path, headers, body) if (dump := self._dump) else None
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
            async with aclosing(self._decode(decoder, response, watchdog, request)) as events:
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
        known = self._config.authorisation
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
        text = b"" if trouble else await response.read_error_body(self._config.timeouts.error_body)
        error = read_body(response.status, response.headers, text, host=self._config.target.origin.host)
        return replace(error, message=f"the error {trouble}") if trouble else error

    async def _decode(
        self, decoder: Decoder, response: HttpResponse, watchdog: Watchdog, request: ModelRequest
    ) -> AsyncGenerator[StreamEvent, None]:
        body = BodyParser(response.headers.get("content-type", ""))
        endless, longest = EndlessText.of_answer(self._most_tokens(request)), self._longest(request)
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
                    watchdog.progress(_is_reasoning_hidden(decoder))
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


def _is_reasoning_hidden(decoder: Decoder) -> bool:
    """Whether the model produces hidden reasoning, which may take as long as a first token."""
    last = decoder.answer.last
    return isinstance(last, ReasoningDraft) and not last.chunks
