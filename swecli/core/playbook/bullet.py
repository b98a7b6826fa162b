"""A bullet: one learned sentence, its trigger, its evidence, and its outcomes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast, get_args

from msgspec import Struct, field
from msgspec.structs import asdict

from swecli.core.llm.json_values import as_list, as_object
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import printable_line

Tag = Literal["helpful", "harmful", "neutral"]
Kind = Literal["command", "gotcha", "convention", "preference", "location"]
Status = Literal["probation", "active", "core", "offered", "off", "archived", "deleted"]
"""``probation``: shown too rarely to be judged. ``core``: proven, in the prompt of every session. ``off``: switched off
by the user. ``archived``: kept but no longer shown. ``deleted``: removed by the user; the remaining record prevents
learning it again."""

TAGS: tuple[Tag, ...] = get_args(Tag)
KINDS: tuple[Kind, ...] = get_args(Kind)
STATUSES: tuple[Status, ...] = get_args(Status)
LIVE: frozenset[Status] = frozenset(("probation", "active", "core"))
LONGEST = 200
"""Maximum characters of a sentence."""
PREFERENCES = "preferences"
"""Section for the user's preferences, the only one that applies to every project."""
_WORDS_LONGEST = 120
_MOST_WORDS = 24


class Trigger(Struct, frozen=True):
    """When a bullet applies: globs of ``paths``, prefixes of failing ``commands``, signatures of ``errors``, and
    ``keywords`` of a task."""

    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()


class Guard(Struct, frozen=True):
    """The step that a bullet is about. The bullet helped if this step succeeds at the first attempt."""

    command: str = ""
    path: str = ""


class Source(Struct, frozen=True):
    """Evidence for a bullet: items of a session, and the commit at that time."""

    session: str
    events: tuple[str, ...] = ()
    commit: str = ""
    what: str = ""
    """Kind of evidence, in a few words."""


class Expiry(Struct, frozen=True):
    """A bullet expires once one of the ``paths`` is gone, or none of them contains ``symbol``."""

    paths: tuple[str, ...] = ()
    symbol: str = ""


class Bullet(Struct):
    """A learned sentence. Times are Unix seconds. ``exposures`` counts how often it was shown."""

    id: str
    section: str
    content: str
    helpful: int = 0
    harmful: int = 0
    neutral: int = 0
    type: Kind = "convention"
    status: Status = "probation"
    frozen: bool = False
    trigger: Trigger = Trigger()
    guard: Guard = Guard()
    evidence: tuple[Source, ...] = ()
    expiry: Expiry = Expiry()
    created_at: float = 0.0
    last_used: float = 0.0
    verified_at: float = 0.0
    exposures: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """Unknown fields written by a later version, preserved on writing."""

    def tag(self, tag: Tag, count: int = 1) -> None:
        """Count an outcome.

        Raises:
            ValueError: the tag is unknown.
        """
        if tag not in TAGS:
            raise ValueError(f"unknown tag {tag!r}; tags: {', '.join(TAGS)}")
        setattr(self, tag, getattr(self, tag) + count)

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def key(self) -> str:
        """Equal for bullets with the same content."""
        return content_key(self.section, self.content)

    @property
    def worth(self) -> float:
        """Lower bound of the share of helpful outcomes, 0..1."""
        return wilson(self.helpful, self.harmful)

    @property
    def last_seen(self) -> float:
        """Time of the latest support for it."""
        return max(self.created_at, self.last_used, self.verified_at)


Z = 1.0
"""Standard deviations: the true share exceeds the bound with a probability of 84 %. A project yields few outcomes, so a
stricter bound would never promote a sentence."""


@lru_cache(1_024)
def wilson(helpful: int, harmful: int) -> float:
    """Lower bound of the Wilson interval under the prior Beta(1, 1), 0..1; negative counts are taken as 0."""
    good, bad = max(0, helpful) + 1, max(0, harmful) + 1
    number = good + bad
    share, square = good / number, Z * Z
    middle = share + square / (2 * number)
    spread = Z * math.sqrt(share * (1 - share) / number + square / (4 * number * number))
    return (middle - spread) / (1 + square / number)


def content_key(section: str, content: str) -> str:
    """Hash of a sentence, independent of case, spacing and a final full stop."""
    text = " ".join(content.casefold().split()).rstrip(".!")
    return hashlib.sha256(f"{section.casefold()}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]


_NO_LETTER = lazy_pattern(r"[^a-z0-9]")


def identifier(section: str, content: str, turn: int = 0) -> str:
    """An id such as ``fil-00042``. It depends only on the content, so that branches and machines give the same sentence
    the same id; ``turn`` is increased if another sentence has that id."""
    prefix = (_NO_LETTER.sub("", section.casefold()) + "xxx")[:3]
    number = (int(content_key(section, content)[:12], 16) + turn) % 100_000
    return f"{prefix}-{number:05d}"


_ID = lazy_pattern(r"[a-z0-9]{3}-\d{3,5}")
_NUMBERS = ("helpful", "harmful", "neutral", "exposures")
_TIMES = ("created_at", "last_used", "verified_at")
_OWN = frozenset(Bullet.__struct_fields__) - {"extra"}


def to_record(bullet: Bullet) -> dict[str, Any]:
    """The bullet as JSON, without default values."""
    record: dict[str, Any] = {"id": bullet.id, "section": bullet.section, "content": bullet.content}
    record |= {"helpful": bullet.helpful, "harmful": bullet.harmful}
    usual = Bullet("", "", "")
    for name in Bullet.__struct_fields__:
        value = getattr(bullet, name)
        if name in record or name == "extra" or value == getattr(usual, name):
            continue
        if name in ("trigger", "guard", "expiry"):
            value = _given(asdict(value))
        elif name == "evidence":
            value = [_given(asdict(source)) for source in bullet.evidence]
        elif name in _TIMES:
            value = int(value)
        record[name] = value
    return {**record, **bullet.extra}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value}
    return {
        name: list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
        for name, value in given.items()
    }


def from_record(record: object) -> Bullet:
    """The bullet in a JSON object. Invalid optional fields are ignored.

    Raises:
        ValueError: it has no id, or no content that fits on a line.
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    data = cast("dict[str, Any]", record)
    name, section, content = data.get("id"), data.get("section"), data.get("content")
    if not (isinstance(name, str) and isinstance(section, str) and isinstance(content, str)):
        raise ValueError("id, section and content must be strings")
    status = data.get("status")
    if printable_line(content) != content or (not content and status != "deleted") or len(content) > LONGEST:
        raise ValueError(f"the content must be one line of at most {LONGEST} characters")
    if not _ID.fullmatch(name) and printable_line(name) != name:
        raise ValueError("the id must be one line")
    bullet = Bullet(name[:40], printable_line(section)[:40] or "other", content)
    for number in _NUMBERS:
        setattr(bullet, number, int(_number(data.get(number), 1_000_000)))
    for time in _TIMES:
        setattr(bullet, time, _number(data.get(time), 1e11))
    bullet.type = one_of(data.get("type"), KINDS, bullet.type)
    bullet.status = one_of(status, STATUSES, bullet.status)
    bullet.frozen = data.get("frozen") is True
    trigger, guard, expiry = (as_object(data.get(part)) for part in ("trigger", "guard", "expiry"))
    bullet.trigger = Trigger(*(_words(trigger.get(part)) for part in ("paths", "commands", "errors", "keywords")))
    bullet.guard = Guard(_word(guard.get("command")), _word(guard.get("path")))
    bullet.expiry = Expiry(_words(expiry.get("paths")), _word(expiry.get("symbol")))
    bullet.evidence = tuple(_source(source) for source in as_list(data.get("evidence"))[-5:])
    bullet.extra = {key: value for key, value in data.items() if key not in _OWN}
    return bullet


T = TypeVar("T")


def one_of(value: object, known: tuple[T, ...], otherwise: T) -> T:
    """``value`` if it is a member of ``known``, otherwise ``otherwise``."""
    return next((member for member in known if member == value), otherwise)


def _number(value: object, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return 0.0
    return float(min(max(0, value), most))


def _word(value: object) -> str:
    return printable_line(value)[:_WORDS_LONGEST] if isinstance(value, str) else ""


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for item in as_list(value)[:_MOST_WORDS] if (word := _word(item)))


def _source(value: object) -> Source:
    table = as_object(value)
    return Source(
        _word(table.get("session")), _words(table.get("events")), _word(table.get("commit")), _word(table.get("what"))
    )
