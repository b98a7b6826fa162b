"""How long a server asks to wait: in headers, in the fields of an error, or in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text, is_object
from swecli.lazy_pattern import lazy_pattern

_LONGEST_DELAY = 1e9
"""Seconds; a longer wait is no serious answer."""
_AGAIN = lazy_pattern(
    r"(?:(?:try again|retry|retry-after|wait)\W+(?:in|after|for)?|resets? (?:in|after))\W*(?=\d)"
    r"(?:(?P<h>\d+) ?h(?:ours?)?)?\W*(?:(?P<m>\d+) ?m(?:in(?:ute)?s?)?(?![a-z]))?\W*"
    r"(?:(?P<n>\d+(?:\.\d+)?) ?(?P<unit>ms|milliseconds?|s|sec(?:ond)?s?)(?![a-z]))?",
    re.IGNORECASE,
)
_FIELDS = ("retry_after", "retry_after_seconds", "resets_in_seconds")


def details_of(layers: Iterable[JsonObject]) -> list[JsonObject]:
    """Google's details of an error."""
    return [item for layer in layers for item in as_list(layer.get("details")) if is_object(item)]


def delay_of(layers: tuple[JsonObject, ...], evidence: str, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait according to the body: Google's details, the fields of several hosts, or words. ``layers`` are
    the error's objects, ``evidence`` its words; ``headers`` tell the server's time."""
    for detail in details_of(layers):
        delay = as_text(detail.get("retryDelay"))
        if delay.endswith("s") and (seconds := number_of(delay[:-1])) is not None:
            return seconds
    for layer in layers:
        metadata = as_object(layer.get("metadata"))
        fields = {**metadata, **layer}
        for seconds in (fields.get(name) for name in _FIELDS):
            if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _LONGEST_DELAY:
                return float(seconds)
        moment = fields.get("resets_at") or as_object(metadata.get("headers")).get("X-RateLimit-Reset")
        if moment and (left := _until(str(moment), _server_time(headers))) is not None:
            return left
    return _delay_in_words(evidence)


def _delay_in_words(text: str) -> float | None:
    match = _AGAIN.search(text)
    if match is None or not any(match.groups()):
        return None
    hours, minutes, amount = (float(match.group(name) or 0) for name in ("h", "m", "n"))
    if (match.group("unit") or "s").lower().startswith(("ms", "milli")):
        amount /= 1000
    seconds = hours * 3600 + minutes * 60 + amount
    return seconds if seconds < _LONGEST_DELAY else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait according to the headers (names in lower case): milliseconds, seconds, or an HTTP date. Zero
    milliseconds count only if nothing else is said: Azure sends them with a wait in seconds."""
    milliseconds = number_of(headers.get("retry-after-ms"))
    if milliseconds:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return milliseconds
    if (seconds := number_of(value)) is not None:
        return max(0.0, seconds)
    moment = _http_date(value)
    return None if moment is None else max(0.0, (moment - _server_time(headers)).total_seconds())


_RESET = lazy_pattern(r"^(?:anthropic-|x-)?ratelimit-(?:[a-z-]+-)?reset(?:-|$)")
_DURATION = lazy_pattern(
    r"^(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+(?:\.\d+)?)ms)?$"
)
_EPOCH, _EPOCH_MS = 1e9, 1e11
"""Numbers from which on a reset is a point in time, in seconds or milliseconds since 1970."""


def reset_of(headers: Mapping[str, str]) -> float | None:
    """Seconds until the used-up limits refill, according to headers such as ``x-ratelimit-reset-requests``: for a
    refusal without any other hint. Limits with something left don't count; one whose remainder is not given does."""
    now = _server_time(headers)
    waits: list[float] = []
    for name, value in headers.items():
        if not _RESET.search(name):
            continue
        left = number_of(headers.get(name.replace("reset", "remaining")))
        seconds = None if left else _until(value, now)
        if seconds is not None:
            waits.append(seconds)
    return max(waits, default=None)


def _until(text: str, now: datetime) -> float | None:
    """Seconds until a point in time (ISO 8601, or since 1970) or of a duration (``6m0s``, or in seconds)."""
    text = text.strip()
    if (number := number_of(text, 1e15)) is not None:
        if number < _EPOCH:
            return number
        return max(0.0, number / (1000 if number >= _EPOCH_MS else 1) - now.timestamp())
    match = _DURATION.match(text)
    if match is not None and text:
        sizes = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
        seconds = sum(float(match.group(name) or 0) * size for name, size in sizes.items())
        return seconds if seconds < _LONGEST_DELAY else None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _server_time(headers: Mapping[str, str]) -> datetime:
    """The server's time, so that this machine's clock does not matter."""
    return _http_date(headers.get("date", "")) or datetime.now(UTC)


def _http_date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # a start needs no more of email

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter for an impossible time zone
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def number_of(text: str | None, largest: float = _LONGEST_DELAY) -> float | None:
    """A number from a header, if valid and within reason."""
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < largest else None
