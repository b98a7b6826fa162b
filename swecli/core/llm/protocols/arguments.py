"""Arguments and ids of tool calls: parsed once, rewritten only where a host demands it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from swecli.core.llm.json_values import JsonObject, compact, is_object, parse_json

IdAlphabet = Literal["any", "alnum9", "token40", "token64"]
"""What a host accepts as the id of a call: anything; exactly 9 letters and digits; up to 40 or 64 of
``[A-Za-z0-9_-]``."""

_ACCEPTED: dict[IdAlphabet, re.Pattern[str]] = {
    "any": re.compile(r".*", re.S),
    "alnum9": re.compile(r"[A-Za-z0-9]{9}"),
    "token40": re.compile(r"[A-Za-z0-9_-]{1,40}"),
    "token64": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}


@dataclass(frozen=True, slots=True)
class ParsedArguments:
    """``value`` is None where the raw text is no JSON object (``ok`` False)."""

    value: JsonObject | None
    ok: bool


def parse_arguments(raw: str) -> ParsedArguments:
    """The arguments of a call. Nothing but blanks means no arguments."""
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


def arguments_object(raw: str) -> JsonObject:
    """The arguments for a protocol that wants an object. Text that is none is wrapped, not lost."""
    parsed = parse_arguments(raw)
    return parsed.value if parsed.value is not None else {"invalid_json": raw}


def arguments_text(raw: str, must_parse: bool) -> str:
    """The arguments for a protocol that wants text: as the model wrote them, except that nothing becomes an
    empty object, and that invalid text is wrapped for hosts that parse it (``must_parse``)."""
    if not raw.strip():
        return "{}"
    return raw if not must_parse or parse_arguments(raw).ok else compact(arguments_object(raw))


def rewrite_id(call_id: str, alphabet: IdAlphabet) -> str:
    """The id as the host accepts it: unchanged where it fits, else a pure function of it, so that a call and
    its result agree and stay the same in every request."""
    if _ACCEPTED[alphabet].fullmatch(call_id):
        return call_id
    digest = base64.b32encode(hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest()).decode().lower()
    return digest[:9] if alphabet == "alnum9" else f"call_{digest[:24]}"
