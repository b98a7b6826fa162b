"""The summary of a conversation: the request on the live prefix, its fallbacks, and validation of the answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.compaction.claims import harmless_summary
from swecli.core.context_management.compaction.options import SummarizationStrategy
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.prompts import harmless, read_prompt
from swecli.core.context_management.work_log import newest_user_texts
from swecli.core.llm.endless import EndlessText
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelClient,
    ModelRequest,
    ProviderError,
    ReasoningDelta,
    SystemBlock,
    TextDelta,
)
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart, Usage, added

EXCERPT = 2_000
"""Characters of a result or of arguments in the serialised form."""
SHORTEST_SUMMARY = 40


def suffix_request(request: ModelRequest, focus: str, max_tokens: int) -> ModelRequest:
    """The agent's own request with the instruction as one more user message: byte for byte the live prefix."""
    instruction = Message("user", (TextPart(_instruction(focus, max_tokens)),), "compaction-instruction")
    return replace(request, messages=(*request.messages, instruction), max_output_tokens=max_tokens, effort=None)


def chunked(messages: Sequence[Message], size: int, characters: int, most: int) -> list[str]:
    """A conversation too long for one request as bounded texts, oldest first: results cut, reasoning dropped. A text
    has as many groups of ``size`` messages as fit; of more than ``most`` texts the oldest are left out."""
    groups = ["\n\n".join(map(_serialised, messages[at : at + size])) for at in range(0, len(messages), size)]
    texts: list[str] = []
    for group in reversed(groups):
        if texts and len(group) + len(texts[0]) + 2 <= characters:
            texts[0] = f"{group}\n\n{texts[0]}"
        elif len(texts) == most:
            texts[0] = f"(The beginning is left out.)\n{texts[0]}"
            break
        else:
            texts.insert(
                0, group if len(group) <= characters else f"(The beginning is left out.)\n{group[-characters:]}"
            )
    return texts


def serialised_request(
    request: ModelRequest, focus: str, max_tokens: int, text: str, earlier: str = ""
) -> ModelRequest:
    """One of these texts in one message, with the summary of the earlier ones, which the answer is to continue."""
    before = (
        f"<summary-so-far>\n{harmless(earlier)}\n</summary-so-far>\n\nUpdate this summary by what follows.\n\n"
        if earlier
        else ""
    )
    prompt = f"{before}<conversation>\n{harmless(text)}\n</conversation>\n\n{_instruction(focus, max_tokens)}"
    return ModelRequest(
        system=(SystemBlock("You summarise conversations between a user and a coding agent."),),
        tools=(),
        messages=(Message("user", (TextPart(prompt),), "compaction-text"),),
        max_output_tokens=max_tokens,
        session=f"{request.session}-summary",
    )


def _instruction(focus: str, max_tokens: int) -> str:
    text = read_prompt("compaction").replace("{words}", str(max(80, max_tokens * 2 // 3)))
    return f"{text}\n\nThe user asks you to pay attention to: {focus}" if focus else text


def _serialised(message: Message) -> str:
    lines: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text):
                lines.append(f"{message.role}: {text}")
            case ToolCallPart(name=name, arguments=arguments):
                lines.append(f"call {name}: {_cut(arguments)}")
            case ToolResultPart(name=name):
                lines.append(f"result of {name}: {_cut(part.whole_text)}")
            case _:
                pass
    return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}… ({len(text):,} characters)"


def unusable(message: Message) -> str | None:
    """Reason to reject an answer as a summary, or None if it is one."""
    if message.tool_calls:
        return f"it called {message.tool_calls[0].name} instead of writing a summary"
    text = message.text.strip()
    if len(text) < SHORTEST_SUMMARY:
        return "it was empty" if not text else f"it was only {json.dumps(text)}"
    response = message.response
    if response is not None and (not response.complete or response.stop.kind == "length"):
        return "it was cut off"
    return None


CALLS = 3
"""Most model calls for one summary, whatever goes wrong."""
CHARACTERS_PER_TOKEN = 3
BOUNDED_SHARE = 0.6
CALLS_BESIDES = 2
"""The same if clearing frees enough without a summary."""
CHUNK = 20
"""Messages to keep together in a conversation too long for one request."""
SHORTEST_TRANSCRIPT = 400
"""Least characters of a conversation text worth a call."""
NO_PART_FITS = "not even a part of the conversation fits the model's window"
FEWEST_TOKENS = 100
"""A shorter summary says less than the record of the session, which costs no time."""
NOT_ASKED = "no summary was requested"
TOO_SMALL = f"{NOT_ASKED}: {NO_PART_FITS}"
LONGEST = 1.25
"""Accepted multiple of the requested length: servers count with their own vocabularies, and some ignore limits."""
WRITING_SECONDS = 60.0
"""A summary is asked for at such a length that the model, as fast as in its newest answer, needs no longer to write it.
Tries that took this time together get no further one."""
LONGEST_SECONDS = 1.5 * WRITING_SECONDS
"""Time after the first word at which an unfinished summary is given up."""
REPEATED_TEXT = 600
"""Characters of repetitions without end that end a summary: far fewer than in an answer, where they may be meant."""
PAUSE = 1.0
"""Seconds before a failed call is repeated, if the server names no time."""
LONGEST_PAUSE = 60.0
"""Longest time in seconds that a server may name; above it the record replaces the summary at once."""


class Summary(Struct, frozen=True):
    """``text`` is empty if no model gave a usable one; ``notes`` then say why. A usable one makes the refusals before
    it irrelevant."""

    text: str
    notes: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()

    @property
    def total_usage(self) -> Usage | None:
        """Usage of all calls together; None if nothing was reported."""
        return reduce(added, self.usage) if self.usage else None


def checked_summary(summary: Summary, ledger: Ledger, cover: Callable[[str], str]) -> Summary:
    """The model's summary without keys, its claims of permissions marked as such."""
    if not summary.text:
        return summary
    typed = (text for _, text in newest_user_texts(ledger))
    return replace(summary, text=harmless_summary(summary.text, typed, cover))


def _refused(reasons: Iterable[str]) -> str:
    """One note about all tries, each reason once."""
    return f"no usable summary: {'; '.join(dict.fromkeys(reason.rstrip('.') for reason in reasons))}"


class Summarizer:
    """Asks the session's model on its live prefix, or another one with the text of the conversation."""

    def __init__(
        self,
        gateway: RequestGateway,
        client: ModelClient,
        options: SummarizationStrategy | None,
        other: ModelClient | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gateway = gateway
        self._other = other or (options.other_model if options else None)
        self._client = self._other or client
        self._monotonic = monotonic
        self._spent = 0.0
        """Seconds that the model has written."""
        self._chunk = max(1, options.summarize_chunk_size) if options else CHUNK

    async def summarize(
        self, request: ModelRequest, focus: str, max_tokens: int, effective: int, calls: int = CALLS
    ) -> Summary:
        """Make a limited number of calls; every answer is validated."""
        if max_tokens < FEWEST_TOKENS:
            return Summary("", (f"{NOT_ASKED}: it could have only {max_tokens} tokens",))
        in_time = self._gateway.context.monitor.writes_in(self._client.info, WRITING_SECONDS)
        if in_time is not None and in_time < FEWEST_TOKENS:
            return Summary("", (f"{NOT_ASKED}: the model writes only {in_time} tokens a minute",))
        max_tokens = max_tokens if in_time is None else min(max_tokens, in_time)
        characters = int(effective * BOUNDED_SHARE * CHARACTERS_PER_TOKEN)
        whole = suffix_request(request, focus, max_tokens)
        if self._other is None and not await self._gateway.too_long(whole, self._client.info, likely=True):
            texts: list[str] = []
        elif not (texts := await self._texts(request, focus, max_tokens, characters, calls)):
            return Summary("", (TOO_SMALL,))
        refusals: list[str] = []
        usages: list[Usage] = []
        earlier = ""
        for left in range(calls - 1, -1, -1):
            wanted = serialised_request(request, focus, max_tokens, texts[0], earlier) if texts else whole
            answer = await self._ask(wanted, likely=not texts)
            if isinstance(answer, str):
                return Summary("", (_refused((*refusals, answer)),), tuple(usages))
            message = answer if isinstance(answer, Message) else None
            error = answer if isinstance(answer, ProviderError) else None
            if message is not None and message.response and message.response.usage:
                usages.append(message.response.usage)
            trouble = str(error) if error else unusable(message) if message else None
            too_long = await self._too_long(message.text, max_tokens) if trouble is None and message else ""
            if too_long:  # the server ignores limits: a retry would fail the same way
                return Summary("", (_refused((*refusals, too_long)),), tuple(usages))
            if trouble is None and message is not None and len(texts) > 1:
                earlier = message.text.strip()
                del texts[0]
                continue
            if trouble is None and message is not None:
                return Summary(message.text.strip(), usage=tuple(usages))
            assert trouble is not None
            refusals.append(trouble)
            overflow = error is not None and error.kind in ("context_overflow", "too_large")
            if (error is not None and not error.retryable and not overflow) or self._spent >= WRITING_SECONDS:
                break
            if error is not None and error.retryable:
                pause = PAUSE if error.retry_after is None else error.retry_after
                if not left or pause > LONGEST_PAUSE:
                    break
                await self._gateway.sleep(pause)
            elif overflow or not texts:
                # The server decides: texts too long for it are split into shorter ones.
                characters = characters // 2 if texts else characters
                texts, earlier = await self._texts(request, focus, max_tokens, characters, max(1, left)), ""
                if not texts:
                    refusals.append(NO_PART_FITS)
                    break
        return Summary("", (_refused(refusals),), tuple(usages))

    async def _too_long(self, text: str, max_tokens: int) -> str:
        """Reason to reject a summary as too long; empty if it is not."""
        monitor = self._gateway.context.monitor
        await monitor.count_ahead([text])
        tokens = round(monitor.count_tokens(text) * monitor.ratio(self._client.info))
        return f"it has {tokens:,} tokens, above the limit of {max_tokens:,}" if tokens > LONGEST * max_tokens else ""

    async def _texts(self, request: ModelRequest, focus: str, max_tokens: int, characters: int, most: int) -> list[str]:
        """The conversation as texts that each fit a request together with the summary of the earlier ones; empty if the
        window has no room for any."""
        while characters >= SHORTEST_TRANSCRIPT:
            texts = chunked(request.messages, self._chunk, characters, most)
            earlier = " word" * max_tokens if len(texts) > 1 else ""
            for text in texts:
                wanted = serialised_request(request, focus, max_tokens, text, earlier)
                if await self._gateway.too_long(wanted, self._client.info):
                    break
            else:
                return texts
            characters //= 2
        return []

    async def _ask(self, request: ModelRequest, *, likely: bool) -> Message | ProviderError | str:
        """The answer, or why there is none; a text, why it was given up: another one would be no better."""
        endless = EndlessText(REPEATED_TEXT)
        began: float | None = None
        before = self._spent
        async with aclosing(self._gateway.send(self._client, request, likely=likely)) as events:
            async for event in events:
                if isinstance(event, TextDelta | ReasoningDelta):
                    began = self._monotonic() if began is None else began
                    self._spent = before + self._monotonic() - began
                    if endless.feed(event):
                        return "it repeated itself without end"
                    if self._spent - before > LONGEST_SECONDS:
                        return f"it was not complete after {LONGEST_SECONDS:g} s"
                if isinstance(event, Finished):
                    used = event.message.response.usage if event.message.response is not None else None
                    written = (used.output_total if used is not None else None) or 0
                    self._gateway.context.monitor.wrote(self._client.info, written, self._spent - before)
                    return event.message
                if isinstance(event, Failed):
                    return event.error
        return ProviderError("truncated", "the answer ended without its end marker")
