"""What a failed request means: any error body of any server -> one of a few kinds, with the numbers it states
and a sentence for the user."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from swecli.core.llm.error_bodies import (
    codes_of,
    delay_of,
    evidence_of,
    first_number,
    innermost_sentence,
    is_per_minute,
    message_of,
    retry_after,
)
from swecli.core.llm.json_values import as_list, as_object, as_text, is_list, parse_json
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
            r"insufficient_(?:user_)?quota|exceeded (?:your|my|the) current quota|credit balance is too low"
            r"|billing_error|payment required"
            r"|insufficient (?:account )?(?:balance|credits?|funds)|insufficient_(?:balance|credits?|funds)"
            r"|balance is (?:insufficient|not enough)|not[ _]enough[ _](?:balance|credits?)|billing_hard_limit"
            r"|requires more credits|more credits are required|(?:out of|no) credits|used all available credits"
            r"|(?:exceeded|reached) your monthly included credits|spending limit|arrearage|overdue ?(?:balance|error)"
            r"|budget[_ ](?:has been )?exceeded|exceededbudget|free tier of the model has been exhausted"
            r"|exceeded_current_quota|key limit exceeded"
            r"|额度不足|余额不足|欠费|余额已用完",
            re.I,
        ),
    ),
    (
        "too_large",
        re.compile(
            r"request_too_large|payload ?too ?large|request entity too large|request body too large|content too large",
            re.I,
        ),
    ),
    (
        "overloaded",
        re.compile(
            r"overloaded|at capacity|capacity[_ ]exceeded|server is busy|high demand|负载已饱和|no_?capacity", re.I
        ),
    ),
    (
        "rate_limit",
        re.compile(
            r"rate.?limit|too[_ ]many[_ ]requests|resource_exhausted|throttl|请求过于频繁|速率限制|concurrency limit",
            re.I,
        ),
    ),
    (
        "auth",
        re.compile(
            r"authentication_error|permission_error|invalid_?api_?key|invalid api key|incorrect api key"
            r"|api key (?:not valid|expired)|api_key_invalid|unauthenticated|unauthorized|permission_?denied"
            r"|no_db_connection|auth_error|invalid api token|无效的令牌",
            re.I,
        ),
    ),
    (
        "not_found",
        re.compile(
            r"not_found_error|model_not_(?:found|exist|available)|modelnotfound|model (?:does )?not exist"
            r"|model(?:s/| [^\n]{1,80} )?(?:is )?not found|not a valid model id|unknown model\b|no such model"
            r"|invalid model name|deploymentnotfound|the model [^\n]{1,120}(?:does not exist|has been deprecated)"
            r"|模型不存在",
            re.I,
        ),
    ),
    (
        "bad_request",
        re.compile(r"invalid_request|invalid_argument|bad_?request|validationexception|invalidparameter", re.I),
    ),
)

_MODERATED = re.compile(
    r"content[ _]?(?:management|moderation|filter|policy|safety)|responsibleai|moderation|flagged"
    r"|data_inspection_failed|inappropriate content|usage policy|safety system|invalid_prompt",
    re.I,
)
"""The request was understood and refused for what it says."""
_OWN_CODES: dict[int, ErrorKind] = {
    1002: "rate_limit",
    1004: "auth",
    1008: "quota",
    1039: "context_overflow",
    1113: "quota",
    1211: "not_found",
    1261: "context_overflow",
    1302: "rate_limit",
    1303: "rate_limit",
    1305: "overloaded",
}
"""Numbers of MiniMax and Z.ai, whose sentences are in more than one language."""

PROXY_LOGIN_HINT = "Give the proxy's name and password in HTTPS_PROXY and HTTP_PROXY: http://NAME:PASSWORD@HOST:PORT."
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
    moderated: bool = False
    """The server refused what the request says."""


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
    inner = as_object(outer.get("error")) or as_object(outer.get("base_resp")) or outer
    message = message_of(value, inner)
    kind_word = inner.get("type") or inner.get("status") or inner.get("error_type")
    error_type = kind_word if isinstance(kind_word, str) else None
    code = next((item for item in (inner.get("code"), outer.get("code")) if _is_code(item)), None)
    code = code if isinstance(code, str | int) else None
    if 300 <= status < 400:
        place = (headers or {}).get("location", "another address")
        return WireError(status, f"the server redirects to {place}", kind="protocol")
    if status == 407:
        return WireError(status, "the proxy wants a name and a password", kind="network", should_retry=False)
    evidence, codes = evidence_of(value), codes_of(value)
    embedded = next((number for number in codes if 400 <= number <= 599), None)
    prompt, window, overflow = _overflow(evidence, value)
    own: ErrorKind | None = next((_OWN_CODES[number] for number in codes if number in _OWN_CODES), None)
    overflow = overflow or own == "context_overflow"
    after = retry_after(headers or {})
    return WireError(
        status,
        message,
        error_type,
        code,
        _kind(status if status >= 400 else embedded, evidence, overflow, own, is_per_minute(value)),
        prompt,
        window,
        after if after is not None else delay_of(value, evidence),
        {"true": True, "false": False}.get((headers or {}).get("x-should-retry", "").strip().lower()),
        as_text(inner.get("param")),
        _MODERATED.search(evidence) is not None,
    )


def to_provider_error(error: WireError, context: ErrorContext) -> ProviderError:
    """The neutral form, with a sentence for the user. An error of unknown nature counts as the server's, unless it
    is about what was said, which is the same next time."""
    unknown: ErrorKind = "bad_request" if error.moderated else "server"
    kind: ErrorKind = unknown if error.kind == "unknown" else error.kind
    if context.provider == "cerebras" and error.status in (400, 413) and not error.message:
        kind = "context_overflow"  # which is how this host says it
    return ProviderError(
        kind,
        readable(innermost_sentence(error.message))
        or f"the server answered with status {error.status} and no explanation",
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
    if error.status == 407:
        return PROXY_LOGIN_HINT
    if error.message.lstrip().startswith("<") and kind in ("not_found", "bad_request", "protocol"):
        return f"A web page came back, so the base URL is probably wrong: check {server}."
    if error.moderated and kind in ("auth", "bad_request"):
        return "The server refused what the request says: say it in another way, or choose another model with /model."
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


def _kind(status: int | None, evidence: str, overflow: bool, own: ErrorKind | None, per_minute: bool) -> WireKind:
    if overflow and status != 429:
        return "context_overflow"
    word: ErrorKind | None = own or next((kind for kind, pattern in _BY_WORD if pattern.search(evidence)), None)
    if word == "quota" and per_minute:
        word = "rate_limit"
    if status == 429 and word in ("quota", "overloaded"):
        return word
    if word == "quota" and status != 404:
        return "quota"
    if word == "not_found" and status is not None and status >= 500:
        return word
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if word is not None and (status is None or word != "bad_request"):
        return word
    if status is None:
        return "unknown"
    return "server" if status >= 500 else "bad_request"


def _is_code(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    text = files("swecli.core.llm").joinpath("overflow.toml").read_text("utf-8")
    return tuple(re.compile(as_text(item), re.I | re.S) for item in as_list(tomllib.loads(text).get("patterns")))


def _overflow(evidence: str, value: object) -> tuple[int | None, int | None, bool]:
    """Prompt size, window, and whether the error is about the context window at all."""
    sent, window = first_number(value, "n_prompt_tokens"), first_number(value, "n_ctx")
    for pattern in _patterns():
        if match := pattern.search(evidence):
            groups = match.groupdict()
            sent = sent if sent is not None else _digits(groups.get("prompt"))
            return sent, window if window is not None else _digits(groups.get("window")), True
    return sent, window, False


def _digits(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits and len(digits) < 16 else None
