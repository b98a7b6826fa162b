"""What a failed request means: any error body of any server -> one of a few kinds, with the numbers it states
and a sentence for the user."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.resources import files
from typing import Literal

from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text, compact, is_list, parse_json
from swecli.core.llm.types import ErrorKind, ProviderError

WireKind = ErrorKind | Literal["unknown"]
"""``unknown``: an error in the middle of a stream that says nothing about its nature."""

_BY_STATUS: dict[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "server",
    409: "server",
    413: "too_large",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}

_BY_WORD: tuple[tuple[ErrorKind, re.Pattern[str]], ...] = (
    (
        "quota",
        re.compile(
            r"insufficient_quota|exceeded your current quota|credit balance is too low|billing_error|payment required"
            r"|insufficient (?:balance|credits?|funds)|billing_hard_limit|requires more credits|out of credits"
            r"|used all available credits|spending limit|arrearage",
            re.I,
        ),
    ),
    ("too_large", re.compile(r"request_too_large|payload too large|request entity too large", re.I)),
    ("overloaded", re.compile(r"overloaded|at capacity|server is busy|high demand", re.I)),
    ("rate_limit", re.compile(r"rate.?limit|too many requests|resource_exhausted|throttl", re.I)),
    (
        "auth",
        re.compile(
            r"authentication_error|permission_error|invalid_api_key|invalid api key|incorrect api key|api key not valid"
            r"|api_key_invalid|unauthenticated|permission_denied",
            re.I,
        ),
    ),
    (
        "not_found",
        re.compile(r"not_found_error|model_not_found|model not exist|model does not exist|model not found", re.I),
    ),
    ("bad_request", re.compile(r"invalid_request_error|invalid_argument|bad_request|badrequest", re.I)),
)

MAX_MESSAGE = 2000
"""Characters of a provider's message that are kept for the user."""


@dataclass(frozen=True, slots=True)
class WireError:
    """An error as the server sent it, with the kind it was found to be. ``status`` is that of the response."""

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
    """Name of the parameter that the server complains about, where it says so in a field."""


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """What the sentence for the user needs to know. All of it may be empty."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    key_variables: tuple[str, ...] = ()


def classify(
    status: int, headers: Mapping[str, str], body: bytes, context: ErrorContext | None = None
) -> ProviderError:
    """The error that a response with an error status means. ``headers`` may have names in any case."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return to_provider_error(read_body(status, lowered, body), context or ErrorContext())


def read_body(status: int, headers: Mapping[str, str], body: bytes) -> WireError:
    """The error in the body of a response with an error status. Header names are in lower case."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.startswith("data:"):  # an event, although the status says that there is no stream
        text = text.removeprefix("data:").partition("\n")[0].strip()
    try:
        value = parse_json(text)
    except ValueError:
        value = text
    return read_error(value, status, headers)


def read_error(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> WireError:
    """The error in a decoded JSON value (or plain text); ``status`` 200 for one in the middle of a stream."""
    while is_list(value) and value:
        value = value[0]
    outer = as_object(value)
    inner = as_object(outer.get("error")) or outer
    message = _message(value, outer, inner)
    kind_word = inner.get("type") or inner.get("status") or inner.get("error_type")
    error_type = kind_word if isinstance(kind_word, str) else None
    code = next((item for item in (inner.get("code"), outer.get("code")) if _is_code(item)), None)
    code = code if isinstance(code, str | int) else None
    evidence = "\n".join((message, error_type or "", str(code or ""), _upstream(inner)))
    effective = status if status >= 400 else _embedded_status(inner, code)
    prompt, window, overflow = _overflow(evidence, inner)
    delay = _retry_info(inner)
    if 300 <= status < 400:
        place = (headers or {}).get("location", "another address")
        return WireError(status, f"the server redirects to {place}", kind="protocol")
    kind = _kind(effective, evidence, overflow, _per_minute(inner))
    after = retry_after(headers or {})
    return WireError(
        status,
        message,
        error_type,
        code,
        kind,
        prompt,
        window,
        after if after is not None else delay,
        {"true": True, "false": False}.get((headers or {}).get("x-should-retry", "").strip().lower()),
        as_text(inner.get("param")),
    )


def to_provider_error(error: WireError, context: ErrorContext) -> ProviderError:
    """The neutral form, with a sentence for the user. An error of unknown nature counts as the server's."""
    kind: ErrorKind = "server" if error.kind == "unknown" else error.kind
    return ProviderError(
        kind,
        readable(error.message) or f"the server answered with status {error.status} and no explanation",
        status=error.status,
        code=error.code,
        error_type=error.type,
        retry_after=error.retry_after,
        prompt_tokens=error.prompt_tokens,
        window=error.window,
        should_retry=error.should_retry,
        hint=hint(kind, error, context),
    )


def readable(message: str) -> str:
    """A message fit for one paragraph: a web page becomes its title, a long text is cut."""
    text = message.strip()
    if text.startswith("<"):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.I | re.S)
        words = title.group(1) if title else re.sub(r"<[^>]*>", " ", text)
        text = f"a web page instead of an answer: {' '.join(words.split())[:200]}"
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."


def hint(kind: ErrorKind, error: WireError, context: ErrorContext) -> str:
    """What the user can do, in one sentence; empty where waiting is all there is and the program does it."""
    server = context.base_url or "the server"
    if error.message.lstrip().startswith("<") and kind in ("not_found", "bad_request", "protocol"):
        return f"A web page came back, so the base URL is probably wrong: check {server}."
    if kind == "auth":
        names = " or ".join(context.key_variables) or "the API key"
        return f"Check the key in {names}: {server} refused it or it may not use this model."
    if kind == "not_found":
        return (
            f"Check the model name {context.model!r} (-m {context.provider or 'provider'}/NAME) "
            f"and the base URL {context.base_url!r}: the server does not know one of them."
        )
    if kind == "quota":
        return f"The account at {server} has no credit left: add some, or choose another model with /model."
    if kind == "context_overflow":
        return "The conversation is larger than the model's context window: /compact makes it smaller."
    if kind == "too_large":
        return "The request is larger than the server accepts: /compact, or drop large results in /context."
    if kind == "bad_request":
        return "The server does not accept the request in this form: the model may not support tools or images."
    if kind in ("rate_limit", "overloaded"):
        return "Wait a moment and try again, or choose another model with /model."
    if kind == "protocol":
        return f"Check the base URL {server}: requests with a key are not redirected to another address."
    if kind == "server":
        return "The fault is on the server's side: try again, or choose another model with /model."
    return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the headers (names in lower case) ask: milliseconds, seconds, or an HTTP date."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after")
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return max(0.0, seconds)
    moment, now = _date(value), _date(headers.get("date", "")) or datetime.now(UTC)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _kind(status: int | None, evidence: str, overflow: bool, per_minute: bool) -> WireKind:
    if overflow and status != 429:
        return "context_overflow"
    word: ErrorKind | None = next((kind for kind, pattern in _BY_WORD if pattern.search(evidence)), None)
    if word == "quota" and per_minute:
        word = "rate_limit"
    if status == 429 and word in ("quota", "overloaded"):
        return word
    if word == "quota" and status != 404:
        return "quota"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if word is not None and (status is None or word != "bad_request"):
        return word
    if status is None:
        return "unknown"
    return "server" if status >= 500 else "bad_request"


def _message(value: object, outer: JsonObject, inner: JsonObject) -> str:
    if isinstance(value, str):
        return value
    plain = outer.get("error")
    candidates = (inner.get("message"), plain if inner is outer else None, outer.get("message"), outer.get("detail"))
    found = next((item for item in candidates if item), None)
    if found is None:
        return compact(value) if outer else ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _upstream(inner: JsonObject) -> str:
    """What a gateway quotes of the server behind it."""
    raw = as_object(inner.get("metadata")).get("raw")
    return raw if isinstance(raw, str) else compact(raw) if raw else ""


def _is_code(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


def _embedded_status(inner: JsonObject, code: str | int | None) -> int | None:
    for item in (code, inner.get("status_code"), inner.get("status")):
        number = int(item) if isinstance(item, str) and item.isascii() and item.isdigit() else as_int(item)
        if number is not None and 400 <= number <= 599:
            return number
    return None


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    text = files("swecli.core.llm").joinpath("overflow.toml").read_text("utf-8")
    return tuple(re.compile(as_text(item), re.I | re.S) for item in as_list(tomllib.loads(text).get("patterns")))


def _overflow(evidence: str, inner: JsonObject) -> tuple[int | None, int | None, bool]:
    """Prompt size, window, and whether the error is about the context window at all."""
    sent, window = as_int(inner.get("n_prompt_tokens")), as_int(inner.get("n_ctx"))
    for pattern in _patterns():
        if match := pattern.search(evidence):
            groups = match.groupdict()
            sent = sent if sent is not None else _digits(groups.get("prompt"))
            return sent, window if window is not None else _digits(groups.get("window")), True
    return sent, window, False


def _digits(text: str | None) -> int | None:
    return int(text) if text and len(text) < 16 else None


def _details(inner: JsonObject) -> list[JsonObject]:
    return [as_object(item) for item in as_list(inner.get("details"))]


def _retry_info(inner: JsonObject) -> float | None:
    for detail in _details(inner):
        delay = as_text(detail.get("retryDelay"))
        if delay.endswith("s") and (seconds := _number(delay[:-1])) is not None:
            return seconds
    return None


def _per_minute(inner: JsonObject) -> bool:
    """Whether what is used up is Google's quota of a minute, which comes back by itself."""
    return any(
        "PerMinute" in as_text(as_object(violation).get("quotaId"))
        for detail in _details(inner)
        for violation in as_list(detail.get("violations"))
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e9 else None
