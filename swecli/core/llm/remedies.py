"""What the user can do about a failed request, in one sentence."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from swecli.core.llm.addresses import is_local
from swecli.core.llm.types import ErrorKind
from swecli.lazy_pattern import lazy_pattern

PROXY_LOGIN_HINT = (
    "Set the proxy's user name and password in HTTPS_PROXY and HTTP_PROXY: http://NAME:PASSWORD@HOST:PORT."
)
ADDRESS_LOGIN = "the name and password in its base URL"
OTHER_MODEL = "choose another model with /model or -m"
LOAD_MODEL = "The server could not load the model: load it there, or choose a smaller one with /model or -m."


KeySource = Literal["environment", "stored", "address", "none"]
"""Where the key of a request comes from: ``environment`` also stands for headers from the settings, ``address`` for
name and password in the base URL, which take the place of a key."""


class ErrorContext(Struct, frozen=True):
    """Context of the sentence for the user. Any of it may be empty. ``key_variables`` are those that hold the key, or
    could hold one."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    key: KeySource = "environment"


TEMPLATE = lazy_pattern(
    r"jinja|(?:chat|prompt)[ _]template|template ?(?:syntax ?)?error| at row \d+, column \d+"  # LM Studio, llama.cpp
    r"|while executing \w+(?:expression|statement)|template: \S*:\d+",  # llama.cpp; Ollama
    re.IGNORECASE,
)
"""The template with which the server turns the conversation into a prompt fails: it would fail again."""
NO_MEMORY = lazy_pattern(
    r"(?:cannot|can't|could not|unable to) free enough memory|requires more (?:system |gpu )?memory"
    r"|(?:insufficient|not enough) (?:system |gpu |free )?(?:resources|memory) to load"
    r"|loading (?:was )?(?:aborted|stopped) due to insufficient",
    re.IGNORECASE,
)
"""The server has no memory for the model, and waiting frees none."""
UNREAD = lazy_pattern(r"(?:image|audio|video) input is not supported|json: cannot unmarshal", re.IGNORECASE)
"""A part of the request that llama.cpp or Ollama can't read, although the status says that the server failed."""
WEB_PAGE = lazy_pattern(r"\s*<[!?a-z]", re.IGNORECASE)
"""Begins like HTML or XML, unlike the ``<400>`` of some gateways."""
ROLES = lazy_pattern(
    r"\broles? (?:is |are )?(?:not )?supported|valid role|does not support ['\"`]?(?:system|developer)",
    re.IGNORECASE,
)
"""The template knows no such role."""
_CAUSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        lazy_pattern(r"requires? (?:the )?--\w|--enable-auto-tool-choice", re.IGNORECASE),
        f"Start the server with the option that it names, or {OTHER_MODEL}.",
    ),
    (
        ROLES,
        f"The model does not accept the roles of these messages: update its template on the server, or {OTHER_MODEL}.",
    ),
    (TEMPLATE, f"The chat template of the model fails on the server: update it there, or {OTHER_MODEL}."),
    (
        lazy_pattern(
            r"alternate between|cannot have 2 or more|prefill|conversation must end with|reasoning_content"
            r"|without its required|tool_calls\[\d+\]\.id|parts must not be empty|cannot unmarshal"
            r"|calls and responses|expected last role"
            r"|roles? must (?:strictly )?alternate|unexpected role|role ['\"`]?tool['\"`]? must"
            r"|must be followed by tool|did not have response messages|without tool_result|tool_use_id"
            r"|tool_(?:use|result)[`'\"]? (?:ids?|blocks?)|no tool (?:output|call) found"
            r"|number of function|function (?:call|response) turn|response parts|tool[ _]call[ _]?ids?\b"
            r"|thought_?signature|thinking[`'\"]? blocks?|encrypted[ _]content|invalid signature"
            r"|failed to parse tool[ _]call arguments|tool_calls?\b[^\n]{0,40}\barguments"
            r"|last message\b[^\n]{0,40} must"
            r"|first message must|final (?:message|assistant)|(?:text content|content) blocks? must|must be non-?empty"
            r"|can only get item pairs",
            re.IGNORECASE,
        ),
        f"The server rejects a part of the earlier conversation: /rewind or /compact removes it, or {OTHER_MODEL}.",
    ),
    (
        lazy_pattern(
            r"input_schema|(?:tools|functions|function_declarations)['\"`]?[.\[]\[?\d|function\.(?:name|parameters)"
            r"|invalid (?:json )?schema|schema for (?:function|tool)|tool names? must|duplicate (?:tool|function)"
            r"|too many (?:tools|functions)|(?:number|length|array)[^\n]{0,40}\b(?:tools|functions)\b"
            r"|(?:tools|functions)\b[^\n]{0,40}(?:too long|at most|maximum)",
            re.IGNORECASE,
        ),
        f"The server rejects the description of a tool: leave out the tool or MCP server that it names, or "
        f"{OTHER_MODEL}.",
    ),
    (
        lazy_pattern(
            r"\bimages?\b[^\n]{0,80}(?:exceed|too (?:large|small|big|many)|dimension|maximum|size|decod|process|corrupt"
            r"|media[ _]type|pixels)|(?:exceed|too (?:large|many)|invalid|decod|process|corrupt)[^\n]{0,40}\bimages?\b",
            re.IGNORECASE,
        ),
        "The server rejects an image: use a smaller PNG or JPEG file; /rewind removes the message with the image.",
    ),
    (
        lazy_pattern(
            r"(?:country|region|territory|location)[^\n]{0,40} not (?:supported|available)"
            r"|not (?:supported|available) in your (?:country|region|location)",
            re.IGNORECASE,
        ),
        f"The provider does not serve your region: check your proxy or VPN, or {OTHER_MODEL}.",
    ),
    (
        lazy_pattern(r"must be verified", re.IGNORECASE),
        f"Verify the organization with the provider, or {OTHER_MODEL}.",
    ),
    (
        lazy_pattern(r"no endpoints found that support", re.IGNORECASE),
        f"The model's providers may not support tools or images: {OTHER_MODEL}.",
    ),
    (
        lazy_pattern(r"no endpoints found matching|no allowed providers|data policy", re.IGNORECASE),
        f"The account's settings exclude every provider of this model: change them, or {OTHER_MODEL}.",
    ),
    (
        lazy_pattern(
            r"no models? (?:is |are )?loaded|model is not loaded|(?:failed|unable|could not) (?:to )?load(?:ing)? model"
            r"|requires more system memory|insufficient system resources",
            re.IGNORECASE,
        ),
        LOAD_MODEL,
    ),
    (NO_MEMORY, LOAD_MODEL),
    (
        lazy_pattern(
            r"only supported in v1/\w+|not a chat model|chatcompletion operation does not work", re.IGNORECASE
        ),
        f"The model needs another protocol (`protocol` in the provider's settings), or {OTHER_MODEL}.",
    ),
    (
        lazy_pattern(r"failed to call a function|tool call validation failed", re.IGNORECASE),
        f"The model wrote a call that its server could not read: try again, or {OTHER_MODEL}.",
    ),
)
"""Causes that a server names in words and that its status does not tell."""
_PLAN = lazy_pattern(r"usage_not_included|\bplan\b[^\n]{0,40}upgrade|upgrade[^\n]{0,40}\bplan\b", re.IGNORECASE)
_LATER = lazy_pattern(r"(?:try|retry)( your request)?( again)? (?:later|after|in )|please (?:re)?try", re.IGNORECASE)
"""The server itself advises to try again."""
_ABILITY = r"\btools?\b|\bfunctions?\b|\bimages?(?:_url)?\b|\bvision\b|multi-?modal"
_NO = r"\bnot?\b|n't\b|unsupported|only|at most 0|disabled|unknown|unrecognized|not permitted"
_FORM = lazy_pattern(rf"(?:{_NO})[^\n]{{0,60}}(?:{_ABILITY})|(?:{_ABILITY})[^\n]{{0,60}}(?:{_NO})", re.IGNORECASE)
"""The model lacks an ability that the request needs."""


def hint(kind: ErrorKind, status: int, message: str, context: ErrorContext, *, moderated: bool = False) -> str:
    """The user's remedy; empty if only waiting helps, which the program does."""
    server = context.base_url or "the server"
    if status == 407:
        return PROXY_LOGIN_HINT
    if WEB_PAGE.match(message) and kind in ("auth", "not_found", "bad_request", "protocol"):
        if kind == "auth":
            return f"A web page answered: a proxy or firewall blocks {server}, or the base URL is wrong."
        return f"The server sent a web page, so the base URL is probably wrong: check {server}."
    if moderated and kind in ("auth", "bad_request"):
        return f"The server rejected the content of the request: rephrase it, or {OTHER_MODEL}."
    if kind in ("auth", "not_found", "bad_request", "server"):
        cause = next((remedy for pattern, remedy in _CAUSES if pattern.search(message)), "")
        if cause:
            return cause
    return _by_kind(kind, message, context, server)


def _by_kind(kind: ErrorKind, message: str, context: ErrorContext, server: str) -> str:
    if kind == "auth":
        return _for_key(context, server)
    if kind == "not_found":
        return (
            f"Check the model name {context.model!r} (/model or -m {context.provider or 'provider'}/NAME) and the base "
            f"URL {context.base_url!r}: the server does not recognise one of them."
        )
    if kind == "quota" and _PLAN.search(message):
        return f"The plan of this account does not include the model: change the plan, or {OTHER_MODEL}."
    if kind == "quota":
        return f"The account at {server} has no credit or quota left: add some, wait until it resets, or {OTHER_MODEL}."
    if kind == "context_overflow":
        larger = ", or load the model with a larger one" if context.base_url and is_local(context.base_url) else ""
        return f"The conversation exceeds the model's context window: /compact shrinks it{larger}."
    if kind == "too_large":
        return "The request is larger than the server accepts: /compact, or drop large results in /context."
    if kind == "bad_request" and _FORM.search(message):
        return "The server rejected the form of the request: the model may not support tools or images."
    if kind == "bad_request":
        return f"The same request would fail again: change what the server names, or {OTHER_MODEL}."
    if kind in ("rate_limit", "overloaded"):
        return f"If it persists, {OTHER_MODEL}." if _LATER.search(message) else f"Try again later, or {OTHER_MODEL}."
    if kind == "protocol":
        return f"Check the base URL {server}: swecli does not follow redirects with a key."
    if kind == "server":
        return f"The server failed: try again, or {OTHER_MODEL}."
    return ""


_SHELL: tuple[tuple[re.Pattern[str], str], ...] = (
    (lazy_pattern(r" \(/model in a session\)"), ""),
    (lazy_pattern(r"(?:use /model, or type|/model or -m) (?=[\w.-]+/(?:NAME|name)\b)"), "use -m "),
    (lazy_pattern(r"\bType (?=[\w.-]+/(?:NAME|name)\b)"), "Give -m "),
    (lazy_pattern(r"/model or -m\b"), "-m"),
    (lazy_pattern(r"(?<![\w/.:~-])/login\b(?![/\w-]|\.\w)"), "swecli login"),
)


def for_shell(text: str) -> str:
    """A text about models and keys for somebody in a shell, where ``/model`` and ``/login`` do not work."""
    for pattern, words in _SHELL:
        text = pattern.sub(words, text)
    return text


def _for_key(context: ErrorContext, server: str) -> str:
    names = " or ".join(context.key_variables)
    login = f"/login {context.provider}"
    if context.key == "none":
        return f"{server} requires a key: {f'set {names} or ' if names else ''}use {login}."
    if context.key == "address":
        return f"{server} rejected {ADDRESS_LOGIN}: correct them there; with them, swecli sends no key."
    if context.key == "stored":
        return f"{server} rejected the stored key, or the key may not use this model: {login} stores another one."
    key = f"the key in {names}" if names else "the API key"
    return f"Check {key}: {server} rejected it, or the key may not use this model."
