"""Recovery from a server that does not know one of our optional parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_object, is_list
from swecli.core.llm.protocols.base import WireRequest

_REFUSED = re.compile(
    r"unsupported|not supported|unknown|unrecognized|unexpected|not permitted|not allowed|extra (?:inputs|fields)"
    r"|does not support|invalid (?:parameter|argument|field)|additional propert|not a valid|cannot be used"
    r"|no such|must be verified",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"does not support (?:the use of )?(?:tools?|function calling)|tools? (?:use |calling )?(?:is|are) not supported"
    r"|support tool use|tool choice requires --enable-auto-tool-choice|tools param requires --jinja",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"unsupported|not supported|unknown|unrecognized|unexpected|not permitted|extra (?:inputs|fields)"
    r"|additional propert|no such",
    re.IGNORECASE,
)
_ITEM_FIELDS = (
    "reasoning_content",
    "reasoning_details",
    "reasoning",
    "extra_content",
    "cache_control",
    "phase",
    "status",
    "annotations",
)
"""What items of a conversation can do without."""
_ITEM_LISTS = ("messages", "input", "contents", "system", "tools")
_TWINS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Two names for one parameter: where one is refused and the other is named, it is meant."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Leave out ``parameter``, or send it as ``renamed``. ``in_items``: it is a field of the conversation's items."""

    parameter: str
    renamed: str | None = None
    in_items: bool = False

    @property
    def notice(self) -> str:
        """One line for the user."""
        if self.renamed is not None:
            return f"The server wants {self.renamed} instead of {self.parameter}; it gets that from now on."
        if self.in_items:
            return f"The server does not know {self.parameter} in messages; it is left out from now on."
        return f"The server does not know the parameter {self.parameter}; it is left out from now on."


def refuses_tools(error: WireError) -> bool:
    """Whether the server says that the model, as it is set up, can't be given tools."""
    return error.kind in ("bad_request", "not_found") and _NO_TOOLS.search(error.message) is not None


def find_adjustment(error: WireError, request: WireRequest) -> Adjustment | None:
    """What to change so that the server accepts the request, if the error is about an optional parameter."""
    if error.kind != "bad_request" or error.status not in (400, 422):
        return None
    text = f"{error.parameter} {error.message} {error.code or ''}"
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
    """The request with all adjustments made."""
    if not adjustments:
        return request
    changes = {item.parameter: item.renamed for item in adjustments if not item.in_items}
    body: JsonObject = {}
    for key, value in request.body.items():
        name = changes.get(key, key)
        if name is not None:
            body[name] = value
    for path in changes:
        outer, dot, inner = path.partition(".")
        if dot and outer in body:
            body[outer] = {key: value for key, value in as_object(body[outer]).items() if key != inner}
    for field in [item.parameter for item in adjustments if item.in_items]:
        body.update({name: _without(body[name], field) for name in _ITEM_LISTS if name in body})
    optional = tuple(name for key in request.optional if (name := changes.get(key, key)) is not None)
    return replace(request, body=body, optional=optional)


def _item_field(text: str, body: JsonObject) -> str:
    """The field of items that the text is about; empty where it is about none."""
    if not _UNKNOWN.search(text):
        return ""
    for field in _ITEM_FIELDS:
        path = rf"\b(?:messages|input|contents|system|tools)\b['\"]?[.\[,][^\s:]*\b{field}\b"
        named = re.search(path, text) or ("_" in field and _names(text, field) and field not in body)
        if named and any(_without(body[name], field) != body[name] for name in _ITEM_LISTS if name in body):
            return field
    return ""


def _without(items: object, field: str) -> object:
    """A list of items without a field, in their own parts neither."""
    if not is_list(items):
        return items
    out: list[object] = []
    for item in items:
        fields = as_object(item)
        kept = {key: _without(value, field) for key, value in fields.items() if key != field}
        out.append(kept if fields else item)
    return out


def _has(body: JsonObject, path: str) -> bool:
    """Whether ``body`` has a key, or ``outer.inner`` a key within a key."""
    outer, dot, inner = path.partition(".")
    return outer in body and (not dot or inner in as_object(body[outer]))


def _names(text: str, parameter: str) -> bool:
    return _position(text, parameter) >= 0


def _position(text: str, parameter: str) -> int:
    match = re.search(rf"(?<![A-Za-z0-9_]){re.escape(parameter)}(?![A-Za-z0-9_])", text)
    return match.start() if match else -1
