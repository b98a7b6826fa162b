"""Provider errors: the meaning of each status and body, and the remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from swecli.core.llm.error_table import error_table
from swecli.core.llm.json_values import (
    JsonObject,
    as_int,
    as_list,
    as_object,
    as_text,
    compact,
    is_list,
    is_object,
    parse_event,
)
from swecli.core.llm.remedies import WEB_PAGE, ErrorContext, hint
from swecli.core.llm.retry_hints import delay_of, details_of, reset_of, retry_after
from swecli.core.llm.types import ErrorKind, ProviderError
from swecli.lazy_pattern import lazy_pattern

_DEPTH = 6
"""Depth of the search for wrapped errors."""
_WORDS = (
    "message",
    "error",
    "detail",
    "error_message",
    "errorMessage",
    "msg",
    "Message",
    "status_msg",
    "error_msg",
    "error_description",
    "title",
    "reason",
)
"""Keys of the error sentence, most usual first."""
_HOLDERS = ("error", "errors", "detail", "details", "message", "body", "base_resp", "response", "cause", "innererror")
"""Keys that may wrap another error."""


def layers(value: object) -> tuple[JsonObject, ...]:
    """The objects of an error from outside to inside: the whole, its error, and errors wrapped in that as an object, in
    a list, or as JSON text."""
    return tuple(_layers(value, _DEPTH))


def _layers(value: object, depth: int) -> Iterator[JsonObject]:
    if depth == 0:
        return
    if isinstance(value, str):
        wrapped = _json_in(value)
        if wrapped is not None:
            yield from _layers(wrapped, depth - 1)
    elif is_list(value):
        for item in value[:5]:
            yield from _layers(item, depth - 1)
    elif is_object(value):
        yield value
        for key in _HOLDERS:
            yield from _layers(value.get(key), depth - 1)
        yield from _layers(as_object(value.get("metadata")).get("raw"), depth - 1)


def _json_in(text: str) -> object:
    """The JSON at the end of a text; in its middle only an error, because a server may quote anything there."""
    start = text.find("{")
    if start < 0:
        return None
    if not text.rstrip().endswith(("}", "]")):
        return _error_in(text, start)
    try:
        return parse_event(text[start:])
    except ValueError:
        return None


def _error_in(text: str, start: int) -> JsonObject | None:
    try:
        value: object = json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None
    return as_object(value) if as_object(value).get("error") else None


def message_of(value: object, inner: JsonObject) -> str:
    """The server's error sentence; ``inner`` is the object that contains it."""
    if isinstance(value, str):
        return value
    outer = as_object(value)
    candidates = [inner.get("message"), None if is_object(outer.get("error")) else outer.get("error")]
    candidates += [outer.get("message"), outer.get("detail")]
    candidates += [layer.get(key) for layer in (inner, outer) for key in _WORDS if not is_object(layer.get(key))]
    candidates += [as_object(layer).get(key) for layer in _in_lists(outer) for key in _WORDS]
    candidates += [layer.get(key) for layer in layers(outer)[1:] for key in _WORDS if isinstance(layer.get(key), str)]
    sentence = next((item for item in candidates if item), None)
    if sentence is None:
        return compact(value) if outer else ""
    return sentence if isinstance(sentence, str) else json.dumps(sentence, ensure_ascii=False)


def _in_lists(outer: JsonObject) -> Iterator[object]:
    for key in ("errors", "error"):
        yield from as_list(outer.get(key))


def innermost_sentence(message: str) -> str:
    """The sentence inside a message that is the JSON of another error; else the message."""
    wrapped = _json_in(message)
    if not is_object(wrapped):
        return message
    sentence = ""
    for layer in layers(wrapped):
        words = [text for key in _WORDS if (text := as_text(layer.get(key))) and _json_in(text) is None]
        sentence = next(
            (text for text in words if not text.isascii() or " " in text),  # no code such as INVALID_REQUEST_BODY
            sentence or next(iter(words), ""),
        )
    return sentence or message


def _routed_sentence(value: object) -> str:
    """The sentence of the provider whose error OpenRouter relays in place of its own "Provider returned error"."""
    for layer in layers(value):
        metadata = as_object(layer.get("metadata"))
        if raw := as_text(metadata.get("raw")).strip():
            name = as_text(metadata.get("provider_name"))
            return f"{name}: {innermost_sentence(raw)}" if name else innermost_sentence(raw)
    return ""


def _validation_sentence(outer: JsonObject) -> str:
    """A list of rejected fields (FastAPI, pydantic) in words: ``Field required (body.model)``."""
    sentences: list[str] = []
    for item in map(as_object, as_list(outer.get("detail"))[:3]):
        location = ".".join(map(str, as_list(item.get("loc"))))
        if text := as_text(item.get("msg")):
            sentences.append(f"{text} ({location})" if location else text)
    return "; ".join(sentences)


def evidence_of(value: object) -> str:
    """All words of an error that indicate its kind: sentences, types and codes of every layer, without what the server
    quotes from the request."""
    pieces = [value] if isinstance(value, str) else []
    for layer in layers(value):
        for key in (*_WORDS, "type", "code", "status", "error_type", "error_code", "Code", "__type"):
            item = layer.get(key)
            for text in as_list(item) if is_list(item) else (item,):
                if isinstance(text, str) and text and text not in pieces:
                    pieces.append(text)
        raw = as_object(layer.get("metadata")).get("raw")
        if raw:
            pieces.append(raw if isinstance(raw, str) else compact(raw))
    return "\n".join(pieces)


def codes_of(value: object) -> tuple[int, ...]:
    """Whole numbers in code and status fields, from outside to inside."""
    codes: list[int] = []
    for layer in layers(value):
        for key in ("code", "status_code", "status", "statusCode", "error_code", "http_code"):
            item = layer.get(key)
            number = int(item) if isinstance(item, str) and item.isascii() and item.isdigit() else as_int(item)
            if number is not None and number not in codes:
                codes.append(number)
    return tuple(codes)


def first_number(value: object, *names: str) -> int | None:
    """The first whole number under one of the names in any layer."""
    numbers = (as_int(layer.get(name)) for layer in layers(value) for name in names)
    return next((number for number in numbers if number is not None), None)


def is_routed(value: object) -> bool:
    """Whether OpenRouter relays another provider's error: it then concerns that provider's account, not the user's."""
    metadata = [as_object(layer.get("metadata")) for layer in layers(value)]
    return any("provider_name" in item and "raw" in item for item in metadata)


def used_up(value: object) -> ErrorKind | None:
    """What a quota of Google that is used up means; None if none is named. One per minute refills by itself, one per
    day not in time, whatever delay comes with it."""
    quotas = [
        as_text(as_object(violation).get("quotaId"))
        for detail in details_of(layers(value))
        for violation in as_list(detail.get("violations"))
    ]
    if any("PerDay" in quota for quota in quotas):
        return "quota"
    return "rate_limit" if any("PerMinute" in quota for quota in quotas) else None


_DAILY = lazy_pattern(r"\bper[- ]day\b|\b[TR]PD\b", re.IGNORECASE)
"""A limit per day, as Google's, Groq's and OpenRouter's sentences name it."""
_SOON = 300.0
"""Seconds that a daily limit may need to refill to count as one that passes."""


WireKind = ErrorKind | Literal["unknown"]
"""``unknown``: an error in mid-stream without any indication of its kind."""

MAX_MESSAGE = 2000
"""Characters of a provider's message kept for the user."""


COMPLAINTS = (200, 400, 422)
"""Statuses of complaints about a part of a request; 200: in a stream."""


class WireError(Struct, frozen=True):
    """A server's error with its detected kind. ``status`` is the response's."""

    status: int
    message: str = ""
    type: str | None = None
    code: str | int | None = None
    kind: WireKind = "unknown"
    prompt_tokens: int | None = None
    window: int | None = None
    retry_after: float | None = None
    should_retry: bool | None = None
    parameter: str = ""
    """Name of the rejected parameter, if a field contains it."""
    moderated: bool = False
    """The server refused the request's content."""
    sentence: str = ""
    """The sentence for the user, if ``message`` does not contain it."""

    @property
    def words(self) -> str:
        """All sentences: a router's own one says nothing of the cause."""
        return f"{self.message}\n{self.sentence}"


def read_body(status: int, headers: Mapping[str, str], body: bytes, *, host: str = "") -> WireError:
    """The error in the body of a response with an error status. Header names are in lower case; ``host`` is the
    server's."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.startswith("data:"):  # an event, although the status means that there is no stream
        text = text.removeprefix("data:").partition("\n")[0].strip()
    try:
        value = parse_event(text)
    except ValueError:
        value = text
    return read_error(value, status, headers, host=host)


def read_error(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None, *, host: str = ""
) -> WireError:
    """The error in a decoded JSON value (or plain text); ``status`` 200 for one in mid-stream."""
    while is_list(value) and value:
        value = value[0]
    outer = as_object(value)
    inner = as_object(outer.get("error")) or as_object(outer.get("base_resp")) or outer
    message = message_of(value, inner)
    kind_word = inner.get("type") or inner.get("status") or inner.get("error_type")
    error_type = kind_word if isinstance(kind_word, str) else None
    code = next((item for item in (inner.get("code"), outer.get("code")) if _is_code(item)), None)
    code = code if isinstance(code, str | int) else None
    if 300 <= status < 400:
        location = (headers or {}).get("location", "another address")
        return WireError(status, f"the server redirects to {location}", kind="protocol")
    if status == 407:
        return WireError(status, "the proxy requires a user name and password", kind="network", should_retry=False)
    table, evidence, codes = error_table(), evidence_of(value), codes_of(value)
    refusal = status if status >= 400 else next((number for number in codes if 400 <= number <= 599), None)
    prompt, window, overflow = _overflow(evidence, value)
    own: ErrorKind | None = next((table.by_code[number] for number in codes if number in table.by_code), None)
    overflow = overflow or own == "context_overflow"
    response_headers = headers or {}
    hints = (
        retry_after(response_headers),
        delay_of(layers(value), evidence, response_headers),
        reset_of(response_headers),
    )
    wait = next((seconds for seconds in hints[: 3 if refusal == 429 else 2] if seconds is not None), None)
    daily = refusal == 429 and _DAILY.search(evidence) is not None and (wait is None or wait > _SOON)
    return WireError(
        status,
        message,
        error_type,
        code,
        "rate_limit"
        if refusal == 429 and not daily and ("openrouter" in host or is_routed(value))
        else _kind(refusal, evidence, overflow, own, used_up(value) or ("quota" if daily else None)),
        prompt,
        window,
        wait,
        True
        if code == "tool_use_failed"  # Groq: the next answer may have a readable call
        else False
        if refusal == 507 or not table.may_pass(evidence)
        else {"true": True, "false": False}.get((headers or {}).get("x-should-retry", "").strip().lower()),
        as_text(inner.get("param")),
        table.is_moderated(evidence),
        _routed_sentence(value) or _validation_sentence(outer),
    )


def to_provider_error(error: WireError, context: ErrorContext) -> ProviderError:
    """The neutral form, with a sentence for the user. An error of unknown kind counts as the server's, unless it
    concerns the content, which would be the same next time."""
    unknown: ErrorKind = "bad_request" if error.moderated else "server"
    kind: ErrorKind = unknown if error.kind == "unknown" else error.kind
    if context.provider == "cerebras" and error.status in (400, 413) and not error.message:
        kind = "context_overflow"  # this host's way to report it
    plan = error.type if error.type == "usage_not_included" else ""  # in whatever words
    return ProviderError(
        kind,
        readable(error.sentence or innermost_sentence(error.message))
        or f"the server answered with status {error.status} and no explanation",
        status=error.status,
        code=error.code,
        error_type=error.type,
        retry_after=error.retry_after,
        prompt_tokens=error.prompt_tokens,
        window=error.window,
        should_retry=error.should_retry,
        moderated=error.moderated and kind in ("auth", "bad_request"),
        hint=hint(kind, error.status, f"{error.sentence or error.message}\n{plan}", context, moderated=error.moderated),
    )


def says_overloaded(error: ProviderError) -> bool:
    """Whether the server itself calls its refusal an overload, so that it is not only concluded from the status."""
    return error_table().is_overload(f"{error.message}\n{error.error_type}\n{error.code}")


def readable(message: str) -> str:
    """A message fit for one paragraph: a web page becomes its title, a long text is cut."""
    text = message.strip()
    if WEB_PAGE.match(text):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.I | re.S)
        words = title.group(1) if title else re.sub(r"<[^>]*>", " ", text)
        text = f"a web page instead of an answer: {' '.join(words.split())[:200]}"
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."


def _kind(
    status: int | None, evidence: str, overflow: bool, own: ErrorKind | None, used_up: ErrorKind | None
) -> WireKind:
    if overflow and status != 429:
        return "context_overflow"
    table = error_table()
    word = own or table.kind(evidence)
    if used_up is not None and word in ("quota", "rate_limit"):
        word = used_up
    if status == 429 and word in ("quota", "too_large", "overloaded"):
        return word
    if word == "quota" and status != 404:
        return "quota"
    if word == "not_found" and status is not None and status >= 500:
        return word
    if (status is None or status >= 500) and (instead := table.instead(evidence)) is not None:
        return instead
    if status in table.by_status:
        return table.by_status[status]
    if word is not None and (status is None or word != "bad_request"):
        return word
    if status is None:
        return "unknown"
    return "server" if status >= 500 else "bad_request"


def _is_code(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


def _overflow(evidence: str, value: object) -> tuple[int | None, int | None, bool]:
    """Prompt size, window, and whether the error is about the context window at all."""
    sent, window = first_number(value, "n_prompt_tokens"), first_number(value, "n_ctx")
    evidence = _THOUSANDS.sub("", evidence)
    for pattern in error_table().overflows:
        if match := pattern.search(evidence):
            groups = match.groupdict()
            sent = sent if sent is not None else _digits(groups.get("prompt"))
            return sent, window if window is not None else _digits(groups.get("window")), True
    return sent, window, False


_THOUSANDS = lazy_pattern(r"(?<=\d),(?=\d{3}(?!\d))")


def _digits(digits: str | None) -> int | None:
    return int(digits) if digits and len(digits) < 16 else None
