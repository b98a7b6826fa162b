"""Reading the bodies of failed requests: servers, gateways and the servers behind gateways put the same facts in many
places, and into each other. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from swecli.core.llm.json_values import (
    JsonObject,
    as_int,
    as_list,
    as_object,
    as_text,
    compact,
    is_list,
    is_object,
    parse_json,
)

_DEPTH = 6
"""So deep are errors looked for that wrap other errors."""
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
"""Where the sentence stands, the most usual place first."""
_HOLDERS = ("error", "errors", "detail", "details", "message", "body", "base_resp", "response", "cause", "innererror")
"""Where another error may be wrapped."""
_AGAIN = re.compile(
    r"(?:try again|retry|retry-after|wait)\W+(?:in|after|for)?\W*(?=\d)"
    r"(?:(?P<h>\d+) ?h(?:ours?)?)?\W*(?:(?P<m>\d+) ?m(?:in(?:ute)?s?)?(?![a-z]))?\W*"
    r"(?:(?P<n>\d+(?:\.\d+)?) ?(?P<unit>ms|milliseconds?|s|sec(?:ond)?s?)(?![a-z]))?",
    re.IGNORECASE,
)


def layers(value: object) -> tuple[JsonObject, ...]:
    """The objects of an error from outside to inside: the whole, its error, and what is wrapped in that as an object,
    in a list, or as the text of JSON."""
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
    """The JSON that a text is, or ends with."""
    start = text.find("{")
    if start < 0 or not text.rstrip().endswith(("}", "]")):
        return None
    try:
        return parse_json(text[start:])
    except ValueError:
        return None


def message_of(value: object, inner: JsonObject) -> str:
    """The sentence of an error as the server has it; ``inner`` is the object that tells of it."""
    if isinstance(value, str):
        return value
    outer = as_object(value)
    candidates = [inner.get("message"), None if is_object(outer.get("error")) else outer.get("error")]
    candidates += [outer.get("message"), outer.get("detail")]
    candidates += [layer.get(key) for layer in (inner, outer) for key in _WORDS if not is_object(layer.get(key))]
    candidates += [as_object(layer).get(key) for layer in _in_lists(outer) for key in _WORDS]
    candidates += [layer.get(key) for layer in layers(outer)[1:] for key in _WORDS if isinstance(layer.get(key), str)]
    found = next((item for item in candidates if item), None)
    if found is None:
        return compact(value) if outer else ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _in_lists(outer: JsonObject) -> Iterator[object]:
    for key in ("errors", "error"):
        yield from as_list(outer.get(key))


def innermost_sentence(message: str) -> str:
    """The sentence for a person where a message is the JSON of another error; else the message."""
    wrapped = _json_in(message)
    if not is_object(wrapped):
        return message
    sentences = [text for layer in layers(wrapped) for key in _WORDS if (text := as_text(layer.get(key)))]
    plain = [text for text in sentences if _json_in(text) is None]
    return plain[-1] if plain else message


def evidence_of(value: object) -> str:
    """All words of an error that tell its kind: sentences, types and codes of every layer. What a server quotes of
    the request is not among them."""
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
    """Whole numbers that stand where a code or a status does, from outside to inside."""
    found: list[int] = []
    for layer in layers(value):
        for key in ("code", "status_code", "status", "statusCode", "error_code", "http_code"):
            item = layer.get(key)
            number = int(item) if isinstance(item, str) and item.isascii() and item.isdigit() else as_int(item)
            if number is not None and number not in found:
                found.append(number)
    return tuple(found)


def first_number(value: object, *names: str) -> int | None:
    """The first whole number that a layer has under one of the names."""
    numbers = (as_int(layer.get(name)) for layer in layers(value) for name in names)
    return next((number for number in numbers if number is not None), None)


def _details(value: object) -> Iterator[JsonObject]:
    """Google's details."""
    for layer in layers(value):
        for item in as_list(layer.get("details")):
            if is_object(item):
                yield item


def is_per_minute(value: object) -> bool:
    """Whether what is used up is Google's quota of a minute, which comes back by itself."""
    return any(
        "PerMinute" in as_text(as_object(violation).get("quotaId"))
        for detail in _details(value)
        for violation in as_list(detail.get("violations"))
    )


def delay_of(value: object, evidence: str) -> float | None:
    """Seconds to wait as the body says: Google's details, OpenRouter's moment, or words."""
    for detail in _details(value):
        delay = as_text(detail.get("retryDelay"))
        if delay.endswith("s") and (seconds := number_of(delay[:-1])) is not None:
            return seconds
    for layer in layers(value):
        seconds = layer.get("retry_after", as_object(layer.get("metadata")).get("retry_after_seconds"))
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e6:
            return float(seconds)
    return _delay_in_words(evidence)


def _delay_in_words(text: str) -> float | None:
    match = _AGAIN.search(text)
    if match is None or not any(match.groups()):
        return None
    hours, minutes, amount = (float(match.group(name) or 0) for name in ("h", "m", "n"))
    if (match.group("unit") or "s").lower().startswith(("ms", "milli")):
        amount /= 1000
    return hours * 3600 + minutes * 60 + amount


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the headers (names in lower case) ask: milliseconds, seconds, or an HTTP date."""
    if (milliseconds := number_of(headers.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after")
    if value is None:
        return None
    if (seconds := number_of(value)) is not None:
        return max(0.0, seconds)
    moment, now = _date(value), _date(headers.get("date", "")) or datetime.now(UTC)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def number_of(text: str | None) -> float | None:
    """A number of a header, as far as it is one and within reason."""
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e9 else None
