"""Thoughts that a provider refuses to take back: recognising the complaint, and the first message it is about.

Newer models sign each thought together with everything before it. If that changed, the thought and all behind it are
invalid (platform.claude.com, preserved-thinking/prefix-checks); thoughts of another key or account are invalid, too.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from msgspec.structs import replace

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text, is_list, is_object
from swecli.core.llm.refused_parts import Build, Place, has_thoughts, items_in, place_of
from swecli.core.llm.types import ModelRequest
from swecli.lazy_pattern import lazy_pattern

_CODES = frozenset(("invalid_encrypted_content", "thinking_signature_invalid", "invalid_thinking_signature"))
"""Error codes about thoughts; the first is OpenAI's."""
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_WORDS = lazy_pattern(
    r"signature|encrypted[_ ]content|without its required|`?(?:redacted_)?thinking`? blocks?"
    r"|Item (?:with id )?'rs_",
    re.IGNORECASE,
)
"""The sentences of servers that name neither a code nor a place."""
_ITEM_ID = lazy_pattern(r"\brs_\w+")


def refused_from(error: WireError, request: ModelRequest, build: Build) -> int | None:
    """The index of the first message of ``request``, as sent, with a thought that the complaint is about: that message
    and all behind it may have invalid ones. None if it is about something else, or the request has no thoughts."""
    if error.kind not in ("bad_request", "not_found"):
        return None
    signed = [at for at, message in enumerate(request.messages) if has_thoughts(message)]
    if not signed:
        return None
    text = f"{error.parameter} {error.words}"
    place, body = place_of(text), build(request)
    named = _named_item(text, body)
    if named is None and not (str(error.code) in _CODES or _is_thought(place, body) or _WORDS.search(text)):
        return None
    spot = named or place
    first = _message_at(spot, request, build) if spot is not None else 0
    return next((at for at in signed if at >= first), None)


def extends(before: JsonObject, now: JsonObject) -> bool:
    """Whether a body of a Messages request is that of an earlier one with messages added; cache marks do not count."""
    same = all(_unmarked(before.get(key)) == _unmarked(now.get(key)) for key in ("model", "system", "tools"))
    earlier = as_list(before.get("messages"))
    return same and _unmarked(earlier) == _unmarked(as_list(now.get("messages"))[: len(earlier)])


def _unmarked(value: object) -> object:
    if is_list(value):
        return [_unmarked(item) for item in value]
    if is_object(value):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


def _is_thought(place: Place | None, body: JsonObject) -> bool:
    """Whether a thought, or a part with the signature of one, is at this place of the body."""
    items = items_in(body)
    if place is None or place.item >= len(items):
        return False
    item = as_object(items[place.item])
    if place.index is None:
        return item.get("type") in _THOUGHTS
    parts = as_list(item.get(place.key))
    part = as_object(parts[place.index]) if place.index < len(parts) else {}
    return part.get("type") in _THOUGHTS or "thoughtSignature" in part


def _named_item(text: str, body: JsonObject) -> Place | None:
    """The item of reasoning whose id the text has."""
    match = _ITEM_ID.search(text)
    if match is None:
        return None
    ids = [as_text(as_object(item).get("id")) for item in items_in(body)]
    return Place(ids.index(match[0])) if match[0] in ids else None


def _message_at(place: Place, request: ModelRequest, build: Build) -> int:
    """The message behind a place of the body: with fewer messages the place would not exist. The first if it does not
    exist at all."""

    def there(count: int) -> bool:
        items = items_in(build(replace(request, messages=request.messages[:count], breakpoints=())))
        if len(items) <= place.item:
            return False
        return place.index is None or len(as_list(as_object(items[place.item]).get(place.key))) > place.index

    counts = range(1, len(request.messages) + 1)
    index = bisect_left(counts, True, key=there)
    return index if index < len(counts) else 0
