"""What a server takes of the requests to it, and what requests have instead of the parts that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from msgspec import structs
from msgspec.structs import replace

from swecli.core.llm.addresses import is_local
from swecli.core.llm.adjustments import Adjustment, find_adjustment
from swecli.core.llm.answer_formats import REFUSED as FORMAT_REFUSED
from swecli.core.llm.answer_formats import refuses_format
from swecli.core.llm.bound_thoughts import extends, refused_from
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_object
from swecli.core.llm.per_message import ListPerMessage
from swecli.core.llm.protocols.base import Target, WireRequest
from swecli.core.llm.protocols.registry import request_builder
from swecli.core.llm.quarantine import Quarantine
from swecli.core.llm.refused_fields import TOOLS_REFUSAL, refused_field, without_field
from swecli.core.llm.role_complaints import suitable_dialect
from swecli.core.llm.sent_documents import SentDocuments
from swecli.core.llm.sent_images import SentImages
from swecli.core.llm.types import Failed, Finished, ModelInfo, ModelRequest
from swecli.core.llm.web_searches import REFUSED as SEARCH_REFUSED
from swecli.core.llm.web_searches import obstacle, refuses_search
from swecli.core.protocol.messages import DocumentPart, ImagePart, Message, ProviderReport

_WITHOUT_FILES = "ollama-chat"
"""The protocol that has no form for a file."""
CLEARS = "anthropic-messages"
"""The protocol with servers that can clear old tool results themselves."""
NO_CLEARING = "context.server_clearing has no effect with this model: only Anthropic's protocol supports it."
_LETS_DROP = "swecli lets the provider drop only that reasoning."
REFUSES_TOOLS = "The model does not support tools"
DROPS_TOOLS = "The server left the tools out of the prompt"
CHANGED = "The server refused a request like one before it; swecli repeats it as it now sends that one."
_OF_FORM = ("bad_request", "not_found", "server", "unknown")
_NO_NEWS = ProviderReport()

Rebuild = Callable[[ModelRequest], WireRequest]
"""Builds a request as the server now takes it."""


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


def _reads_documents(info: ModelInfo, target: Target) -> bool:
    return info.capabilities.documents and target.origin.protocol != _WITHOUT_FILES


class Compatibility:
    """What one server takes of the requests to it: its model's data say it first, then its refusals."""

    def __init__(self, config: ClientConfig, learn: Callable[[str], str]) -> None:
        """``learn`` is that of the client."""
        self.config: ClientConfig = config
        """With the model's data and the target as they are by now."""
        self._learn = learn
        self._accepted: JsonObject | None = None
        """Body of the newest request that was answered."""
        self._rewriting = ""
        """A clause if the server sees other messages than it was sent."""
        self._build = request_builder(config.target.origin.protocol)
        self.adjustments: list[Adjustment] = []
        self._quarantine = Quarantine(config.target.refused, config.target.origin.host)
        self._attached = ListPerMessage[ImagePart | DocumentPart](attrgetter("attached"))
        self._images = SentImages(config.target.dialect.images, is_blind=config.info.images is False)
        self._documents = SentDocuments(reads=_reads_documents(config.info, config.target))
        self._no_tools = False
        self._no_format = False
        self._no_search = self._told_search = False
        self._told_clearing = False

    def know(self, info: ModelInfo) -> None:
        """Update the model's data, from the next request on."""
        target = replace(
            self.config.target,
            window=info.window,
            max_output=info.max_output,
            capabilities=info.capabilities,
            tells_progress=info.tells_progress,
        )
        for refused in target.refused:  # in this session, whatever the tables say
            target = without_field(target, refused)
        info = replace(info, capabilities=target.capabilities, tools=info.tools and not self._no_tools)
        self.config = replace(self.config, info=info, target=target)
        self._images.know(is_blind=info.images is False)
        self._documents.reads = _reads_documents(info, target)

    def fit(self, request: ModelRequest) -> ModelRequest:
        """The request without what the server refuses."""
        attached = self._attached.all_of(request.messages)
        request = self._documents.apply(request) if attached else request
        if self._no_format and request.answer_format is not None:
            request = replace(request, answer_format=None)
        if self._no_search and request.web_search is not None:
            request = replace(request, web_search=None)
        if self._tools_as_text:
            from swecli.core.llm.text_tools import as_text

            request = as_text(request)
        return self._quarantine.apply(self._images.apply(request) if attached else request)

    @property
    def reads_calls(self) -> bool:
        """Whether texts of answers may be calls."""
        return self.config.target.dialect.tool_calls == "auto" or self._tools_as_text

    @property
    def _tools_as_text(self) -> bool:
        return self._no_tools or not self.config.info.tools or self.config.target.dialect.tool_calls == "text"

    def news(self, request: ModelRequest) -> Iterator[str]:
        """A sentence for the user about each wish of the request that this server does not fulfil, each once."""
        if self._attached.all_of(request.messages):
            yield from self._images.news(request, self._quarantine.refused_earlier)
            yield from self._documents.news(request)
        if request.server_clearing is not None and not self._told_clearing:
            self._told_clearing = True
            if self.config.target.origin.protocol != CLEARS:
                yield NO_CLEARING
        if (wish := request.web_search) is not None and not self._told_search:
            self._told_search = True
            if why := obstacle(wish, self.config.target, with_tools=bool(request.tools)):
                yield f"web_search has no effect here: {why}."

    def settle(
        self, event: Finished | Failed, wire: WireRequest, request: ModelRequest
    ) -> tuple[Finished | Failed, Sequence[str]]:
        """Note how a request ended. Returns the end, with what later requests have to know of it, and sentences for the
        user."""
        from swecli.core.llm.text_tools import uncounted

        whole, sent = isinstance(event, Finished), self.fit(request)
        refused = self._quarantine.settle(sent, answered=whole)
        sentences = [trouble for name in refused if (trouble := self._learn(name))]
        news = self._quarantine.to_record(request, sent) if whole else _NO_NEWS
        if whole and self._rewriting and not news.reduced:
            news = replace(news, reduced=self._rewriting)
        event = _marked(event, wire, request.effort, news)
        if isinstance(event, Finished):
            if self._drops_tools(wire.body, event.message):
                sentences.append(self._describe_tools(DROPS_TOOLS))
                event = Finished(uncounted(event.message))
            self._accepted = wire.body
            self._documents.settle(sent)
        return event, sentences

    def _drops_tools(self, body: JsonObject, answer: Message) -> bool:
        """Whether the first answer of a local server shows that it drops tools; Ollama names models without them."""
        from swecli.core.llm.text_tools import tools_dropped

        config = self.config
        is_first = self._accepted is None and config.target.origin.protocol == "openai-chat"
        return is_first and is_local(config.base_url) and tools_dropped(body, answer)

    def adapt(self, error: WireError, wire: WireRequest, request: ModelRequest, rebuild: Rebuild) -> str:
        """Change the cause of the server's complaint, for this and all later requests. Returns a sentence for the user;
        empty if nothing can be changed."""
        from swecli.core.llm.text_tools import refuses_tools

        if error.kind in _OF_FORM and rebuild(request).body != wire.body:  # by a request at the same time
            return CHANGED
        if field := refused_field(error, wire):
            return self._forgo(field)
        if request.web_search is not None and not self._no_search and refuses_search(error):
            self._no_search = True
            if rebuild(request).body != wire.body:
                return SEARCH_REFUSED.format(error.message[:200])
        if request.answer_format is not None and not self._no_format and refuses_format(error):
            self._no_format = True
            if rebuild(request).body != wire.body:
                return FORMAT_REFUSED.format(error.message[:200])
        if request.tools and not self._tools_as_text and refuses_tools(error):
            return self._describe_tools(REFUSES_TOOLS)
        if no_images := self._images.take(error, request):
            return no_images
        if dropping := self._let_drop(error, wire, request):
            return dropping
        if (roles := self._change_roles(error, wire, request, rebuild)) != "":
            return roles
        if (adjustment := find_adjustment(error, wire)) is not None:
            self.adjustments.append(adjustment)
            return adjustment.notice
        sent = self.fit(request)
        return (
            self._documents.take(error, sent)
            or self._quarantine.take(error, sent, self._body)
            or self._quarantine.suspect(error, sent)
            or self._documents.suspect(error, sent)
        )

    def _forgo(self, field: str) -> str:
        """Send requests without a field, in this session and in later ones."""
        target = without_field(self.config.target, field)
        info = replace(self.config.info, capabilities=target.capabilities)
        self.config = replace(self.config, target=target, info=info)
        trouble = self._learn(field)
        return f"{target.origin.host} does not know {field}; swecli no longer sends it. {trouble}".rstrip()

    def _describe_tools(self, why: str) -> str:
        """Send tools as text, in this session and in later ones."""
        self._no_tools = True
        self.config = replace(self.config, info=replace(self.config.info, tools=False))
        trouble = self._learn(TOOLS_REFUSAL + self.config.target.origin.model)
        return f"{why}; the prompt describes them from now on, and swecli reads calls from the text. {trouble}".rstrip()

    def _let_drop(self, error: WireError, wire: WireRequest, request: ModelRequest) -> str:
        """Let the provider drop the thoughts that no longer fit, instead of refusing the request for them."""
        target = self.config.target
        controls = target.origin.protocol == CLEARS and target.dialect.effort == "output_config"
        if not controls or target.lets_drop(request.messages):
            return ""
        dropping = replace(target, drops_thoughts=True)
        if not dropping.lets_drop(()) or refused_from(error, self.fit(request), self._body) is None:
            return ""
        self.config = replace(self.config, target=dropping)
        if self._accepted is not None and extends(self._accepted, wire.body):
            self._rewriting = f"{target.origin.host} changes messages on their way"
            return f"{self._rewriting}, so the model loses its earlier reasoning. {_LETS_DROP}"
        return f"Earlier messages changed, so the model can't use its reasoning behind them. {_LETS_DROP}"

    def _body(self, request: ModelRequest) -> JsonObject:
        return self._build(request, self.config.target).body

    def _change_roles(self, error: WireError, wire: WireRequest, request: ModelRequest, rebuild: Rebuild) -> str:
        """Send messages in the roles that the server accepts. A remedy that leaves this request as it was is no reason
        for another attempt: the next one follows at once."""
        as_text_before = self._tools_as_text
        before = self.config
        dialect = suitable_dialect(error, before.target.dialect)
        while dialect is not None:
            self.config = replace(before, target=replace(before.target, dialect=dialect))
            if rebuild(request).body != wire.body:
                break
            dialect = suitable_dialect(error, dialect)
        if dialect is None:
            self.config = before
            return ""
        told = error.words[:200].strip()
        if self._tools_as_text and not as_text_before:
            return f"The server has no role for results; the prompt now describes the tools instead: {told}"
        return f"The server rejected the roles of messages; swecli now sends other ones: {told}"
