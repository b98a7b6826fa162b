"""Changes that make a server accept a request: an optional parameter left out or renamed, a shorter answer."""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.errors import COMPLAINTS, WireError
from swecli.core.llm.json_values import JsonObject, as_int, as_object, is_list
from swecli.core.llm.protocols.base import WireRequest
from swecli.lazy_pattern import lazy_pattern

_REFUSED = lazy_pattern(
    r"unsupported|not supported|unknown|unrecognized|unexpected|not permitted|not allowed|extra (?:inputs|fields)"
    r"|does not support|invalid (?:parameter|argument|field)|additional propert|not a valid|cannot be used"
    r"|no such|must be verified",
    re.IGNORECASE,
)
_UNKNOWN = lazy_pattern(
    r"unsupported|not supported|unknown|unrecognized|unexpected|not permitted|extra (?:inputs|fields)"
    r"|additional propert|no such",
    re.IGNORECASE,
)
_ITEM_FIELDS = (
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "reasoning",
    "extra_content",
    "cache_control",
    "phase",
    "status",
    "annotations",
)
"""Optional fields of a conversation's items."""
_ITEM_LISTS = ("messages", "input", "contents", "system", "tools")
_TWINS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Two names for one parameter: if one is refused and the other is mentioned, the other is meant."""
_WORDS = {"think": "thinking", "output_config": "effort level"}
"""What servers call a parameter in their sentences, if not by its name."""


class Adjustment(Struct, frozen=True):
    """Omit ``parameter``, send it as ``renamed``, or send at most ``limit``. ``in_items``: it is a field of the
    conversation's items."""

    parameter: str
    renamed: str | None = None
    in_items: bool = False
    limit: int | None = None

    @property
    def notice(self) -> str:
        if self.limit is not None:
            return f"The server allows {self.parameter} of at most {self.limit:,}; swecli now sends that."
        if self.renamed is not None:
            return f"The server wants {self.renamed} instead of {self.parameter}; swecli now sends that."
        if self.in_items:
            return f"The server does not support {self.parameter} in messages; swecli no longer sends it."
        return f"The server does not support the parameter {self.parameter}; swecli no longer sends it."


_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens")
_ABOUT_OUTPUT = lazy_pattern(r"max(?:imum)?[_ ]?(?:completion|output)?[_ ]?tokens|completion tokens", re.IGNORECASE)
_NUMBER = lazy_pattern(r"(?<![\w.-])\d[\d,]*\b(?![.-]\d)")
_EXCLUSIVE = lazy_pattern(r"exclusive|(?:lower|less|smaller) than \d", re.IGNORECASE)
SHORTEST_ANSWER = 600
"""Tokens. A smaller number in a complaint is no limit for answers, but a status, say."""


def _output_limit(text: str, body: JsonObject) -> Adjustment | None:
    """A smaller limit for the answer, if the text is about the requested one and names the largest allowed."""
    name = next((path for path in _OUTPUT_LIMITS if _has(body, path)), "")
    outer, _, inner = name.partition(".")
    sent = as_int(as_object(body.get(outer)).get(inner) if inner else body.get(outer))
    if sent is None or not _ABOUT_OUTPUT.search(text):
        return None
    numbers = (int(match.replace(",", "")) for match in _NUMBER.findall(text) if len(match) < 12)
    allowed = max((number for number in numbers if SHORTEST_ANSWER <= number < sent), default=None)
    if allowed is None:
        return None
    return Adjustment(name, limit=allowed - 1 if _EXCLUSIVE.search(text) else allowed)


def find_adjustment(error: WireError, request: WireRequest) -> Adjustment | None:
    """The change that makes the server accept the request, if the error is about an optional parameter or the length of
    the answer."""
    if error.kind != "bad_request" or error.status not in COMPLAINTS:
        return None
    text = f"{error.parameter} {error.words} {error.code or ''}"
    if (lower := _output_limit(text, request.body)) is not None:
        return lower
    if not _REFUSED.search(text):
        return None
    if field := _item_field(text, request.body):
        return Adjustment(field, in_items=True)
    named = [name for name in request.optional if _has(request.body, name) and _names(text, name)]
    if not named:
        return None
    parameter = min(named, key=lambda name: (_position(text, name), -len(name)))
    twin = _TWINS.get(parameter)
    return Adjustment(parameter, twin if twin is not None and _names(text, twin) else None)


def adjust(request: WireRequest, adjustments: Collection[Adjustment]) -> WireRequest:
    if not adjustments:
        return request
    changes = {item.parameter: item.renamed for item in adjustments if not item.in_items and item.limit is None}
    body: JsonObject = {}
    for key, value in request.body.items():
        name = changes.get(key, key)
        if name is not None:
            body[name] = value
    for item in adjustments:
        outer, _, inner = (changes.get(item.parameter) or item.parameter).partition(".")
        if item.limit is not None and outer in body:
            body[outer] = (
                {**as_object(body[outer]), inner: _at_most(as_object(body[outer]).get(inner), item.limit)}
                if inner
                else _at_most(body[outer], item.limit)
            )
    for path in changes:
        outer, dot, inner = path.partition(".")
        if dot and outer in body:
            body[outer] = {key: value for key, value in as_object(body[outer]).items() if key != inner}
            if not body[outer]:
                del body[outer]
    for unwanted in [item.parameter for item in adjustments if item.in_items]:
        body.update({name: _without(body[name], unwanted) for name in _ITEM_LISTS if name in body})
    optional = tuple(name for key in request.optional if (name := changes.get(key, key)) is not None)
    return replace(request, body=body, optional=optional)


def _at_most(value: object, limit: int) -> int:
    number = as_int(value)
    return limit if number is None else min(number, limit)


def _item_field(text: str, body: JsonObject) -> str:
    """The item field that the text mentions; empty if none."""
    if not _UNKNOWN.search(text):
        return ""
    for name in _ITEM_FIELDS:
        path = rf"\b(?:messages|input|contents|system|tools)\b['\"]?[.\[,][^\s:]*\b{name}\b"
        named = re.search(path, text) or ("_" in name and _names(text, name) and name not in body)
        if named and any(_without(body[part], name) != body[part] for part in _ITEM_LISTS if part in body):
            return name
    return ""


def _without(items: object, field: str) -> object:
    """A list of items without a field, also in their own parts."""
    if not is_list(items):
        return items
    out: list[object] = []
    for item in items:
        fields = as_object(item)
        remaining = {key: _without(value, field) for key, value in fields.items() if key != field}
        out.append(remaining if fields else item)
    return out


def _has(body: JsonObject, path: str) -> bool:
    """Whether ``body`` has a key, or ``outer.inner`` a key within a key."""
    outer, dot, inner = path.partition(".")
    return outer in body and (not dot or inner in as_object(body[outer]))


def _names(text: str, parameter: str) -> bool:
    return _position(text, parameter) >= 0


def _position(text: str, parameter: str) -> int:
    """Where the text has the parameter: by its name, as xAI's ``reasoningEffort``, or by a word for it."""
    camel = re.sub(r"_([a-z])", lambda match: match[1].upper(), parameter)
    names = "|".join(map(re.escape, filter(None, (parameter, camel, _WORDS.get(parameter)))))
    match = re.search(rf"(?<![A-Za-z0-9_])(?:{names})(?![A-Za-z0-9_])", text)
    return match.start() if match else -1
