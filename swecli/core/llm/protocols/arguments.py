"""Arguments and ids of tool calls: parsed once, rewritten only if a host would reject them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from itertools import pairwise
from json import JSONDecoder
from typing import Literal

from msgspec import Struct

from swecli.core.llm.json_values import JsonObject, compact, is_object, parse_json, parse_loose
from swecli.core.protocol.messages import Message
from swecli.lazy_pattern import lazy_pattern

IdAlphabet = Literal["any", "alnum9", "token40", "token64"]
"""Call ids that a host accepts: anything; exactly 9 letters and digits; up to 40 or 64 of ``[A-Za-z0-9_-]``."""

_ACCEPTED: dict[IdAlphabet, re.Pattern[str]] = {
    "any": lazy_pattern(r".*", re.S),
    "alnum9": lazy_pattern(r"[A-Za-z0-9]{9}"),
    "token40": lazy_pattern(r"[A-Za-z0-9_-]{1,40}"),
    "token64": lazy_pattern(r"[A-Za-z0-9_-]{1,64}"),
}


MAX_QUOTED = 200
"""Characters quoted from arguments that are not a JSON object."""


class ParsedArguments(Struct, frozen=True):
    """``value`` is None if the raw text is not a JSON object (``ok`` False)."""

    value: JsonObject | None
    ok: bool


def parse_arguments(raw: str) -> ParsedArguments:
    """The arguments of a call. Blank text means no arguments."""
    if not raw.strip():
        return ParsedArguments({}, True)
    try:
        value = parse_json(raw)
    except ValueError:
        return ParsedArguments(None, False)
    if value is None:
        return ParsedArguments({}, True)
    return ParsedArguments(value, True) if is_object(value) else ParsedArguments(None, False)


def is_whole(raw: str) -> bool:
    """Whether ``raw`` is a complete JSON object, so that more text would begin another call."""
    return raw.rstrip().endswith("}") and parse_arguments(raw).ok


def once(pieces: Sequence[str]) -> str:
    """The arguments that a stream contains several times, if the pieces together are no JSON object: the last piece, if
    each piece repeats the ones before it, or the first of several equal objects. Empty if the arguments are others."""
    if all(later.startswith(earlier) for earlier, later in pairwise(pieces)) and is_whole(pieces[-1]):
        return pieces[-1]
    rest = "".join(pieces).strip()
    first: object = None
    while rest:
        try:
            value, end = JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError):
            return ""
        if not is_object(value) or first not in (None, value):
            return ""
        first, rest = value, rest[end:].lstrip()
    return compact(first) if first is not None else ""


def arguments_object(raw: str, message: Message) -> JsonObject:
    """The arguments of a call in ``message`` as resent: always an object, and the same one in each request. Unreadable
    arguments are replaced by a quote of their beginning; those of a cut-off call are dropped."""
    for read in (parse_arguments, _parse_slips):
        if (value := read(raw).value) is not None:
            return value
    if message.response is not None and not message.response.complete:
        return {}
    return {"invalid_json": raw if len(raw) <= MAX_QUOTED else raw[:MAX_QUOTED] + "…"}


def arguments_text(raw: str, message: Message) -> str:
    """``arguments_object`` as text, for protocols that need it: the model's own text if it is a JSON object. Servers
    that parse arguments in the history refuse requests with any other."""
    try:
        if is_object(parse_json(raw)):
            return raw
    except ValueError:
        pass
    return compact(arguments_object(raw, message))


def _parse_slips(raw: str) -> ParsedArguments:
    """Arguments with tolerated slips: bare control characters, and a doubly encoded object."""
    try:
        value = parse_loose(raw)
        value = parse_loose(value) if isinstance(value, str) else value
    except ValueError:
        return ParsedArguments(None, False)
    return ParsedArguments(value, True) if is_object(value) else ParsedArguments(None, False)


def rewrite_id(call_id: str, alphabet: IdAlphabet) -> str:
    """The id in a form that the host accepts: unchanged if valid, else a pure function of it, so that a call and its
    result agree and stay the same in every request."""
    if _ACCEPTED[alphabet].fullmatch(call_id):
        return call_id
    digest = base64.b32encode(hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest()).decode().lower()
    return digest[:9] if alphabet == "alnum9" else f"call_{digest[:24]}"
