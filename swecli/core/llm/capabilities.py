"""What a model and its vendor's server can do, as data (``capabilities.toml``), by model and with sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.catalog import common_name, undated
from swecli.lazy_pattern import lazy_pattern


class Capabilities(Struct, frozen=True):
    """The features of one model at one server that a request may use. The defaults apply to an unknown one."""

    binding: bool = False
    """Thoughts are valid only behind exactly the messages that they were made from."""
    display: bool = False
    """Sends readable thoughts only if asked: ``thinking.display``."""
    adaptive_thinking: bool = False
    """Is asked to think as it finds useful, also without an effort: ``thinking: {type: "adaptive"}``. Claude 4.6 to 4.8
    do not think otherwise."""
    system_messages: bool = False
    """Reads a system message in the middle of the conversation."""
    clear_at: bool = False
    """Reads a system message for one step only, up to the next message of the user or tool result: ``clear_at``."""
    tool_changes: bool = False
    """Reads tools added or removed in the middle of the conversation: ``tool_addition``, ``tool_removal``."""
    effort_changes: bool = False
    """Reads a new effort in the middle of the conversation: ``output_config`` of a system message, or
    ``configuration_update``."""
    cache_ttl: tuple[str, ...] = ()
    """Selectable lifetimes of the prompt cache, shortest first, the default first; empty: not selectable."""
    diagnosis: bool = False
    """Says why a prompt missed the cache, if asked."""
    server_compaction: bool = False
    """Summarises the conversation itself, if asked."""
    configuration_update: bool = False
    """Reads ``configuration_update`` items."""
    prompt_cache_options: bool = False
    """Reads ``prompt_cache_options``."""
    web_search: bool = False
    """Has a web search of its own."""
    output_format: bool = False
    """Answers in the format of a JSON schema, if asked."""
    documents: bool = False
    """Reads PDF files."""


class CapabilitySource(Struct, frozen=True):
    """Value of a capability, and its source in a few words."""

    value: bool | tuple[str, ...]
    source: str


USER = "your settings"
"""Source of a capability from the settings."""
REFUSED = "refused by this server"
"""Source of a capability that the server does not have, as it said."""

WITHOUT: Mapping[str, Mapping[str, bool | tuple[str, ...]]] = {
    "display": {"display": False, "adaptive_thinking": False},
    "diagnostics": {"diagnosis": False},
    "comparison_response_id": {"diagnosis": False},
    "prompt_cache_options": {"prompt_cache_options": False},
    "ttl": {"cache_ttl": ()},
    "clear_at": {"clear_at": False},
    "tool_addition": {"tool_changes": False},
    "answer_format": {"output_format": False},
    "configuration_update": {"configuration_update": False, "effort_changes": False},
    "output_config": {"effort_changes": False},
    "system": {"system_messages": False, "clear_at": False, "tool_changes": False, "effort_changes": False},
}
"""What a server does not have that refuses a field, by field."""


class _Rule(Struct, frozen=True):
    first: str | tuple[str, ...]
    since: dict[str, str]
    flags: dict[str, Any]
    source: str
    protocol: str
    vendor: str = ""

    def fits(self, name: _Name) -> bool:
        if self.first != "*" and name.first not in ((self.first,) if isinstance(self.first, str) else self.first):
            return False
        words = name.words or ("",)
        given = [self.since[word] for word in words if word in self.since]
        if "never" in given:
            return False
        least = given[0] if given else self.since.get("*", "")
        return not name.version or name.version >= tuple(map(int, least.split(".")) if least else ())


class _Document(Struct, frozen=True):
    vendors: dict[str, tuple[str, ...]]
    sources: dict[str, str]
    rule: tuple[_Rule, ...]


class _Name(Struct, frozen=True):
    """The parts of a model's name: ``claude-3-7-sonnet`` is claude, 3.7, sonnet."""

    first: str
    version: tuple[int, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, model: str) -> _Name:
        parts = _PARTS.findall(undated(common_name(model)))
        words = [part for part in parts if not part.isdigit()]
        start = next((index for index, part in enumerate(parts) if part.isdigit()), len(parts))
        version = tuple(int(part) for part in takewhile(str.isdigit, parts[start:]))
        return cls(words[0] if words else "", version, tuple(words[1:]))


_PARTS = lazy_pattern(r"[a-z]+|\d+")


@cache
def _document() -> _Document:
    return msgspec.toml.decode(Path(__file__).with_name("capabilities.toml").read_bytes(), type=_Document)


def is_vendors(host: str) -> bool:
    """Whether the host is a vendor's own."""
    hosts = (pattern for patterns in _document().vendors.values() for pattern in patterns)
    return any(fnmatchcase(host.lower(), pattern) for pattern in hosts)


def capability_sources(
    protocol: str,
    host: str,
    model: str,
    provider: str = "",
    own: Mapping[str, Any] | None = None,
    refused: Collection[str] = (),
) -> dict[str, CapabilitySource]:
    """The capabilities of ``model`` at ``host``, each with its source: those of the tables, without fields that the
    server ``refused``, then the user's ``own``. A provider with a vendor's name counts as the vendor at any address,
    because the user gave it that address."""
    document = _document()
    name = _Name.of(model)
    sources: dict[str, CapabilitySource] = {}
    for rule in document.rule:
        if rule.protocol != protocol or not rule.fits(name):
            continue
        hosts = document.vendors.get(rule.vendor, ("*",))
        if provider != rule.vendor and not any(fnmatchcase(host.lower(), pattern) for pattern in hosts):
            continue
        known = msgspec.convert(rule.flags, Capabilities)
        for flag in rule.flags:
            sources[flag] = CapabilitySource(getattr(known, flag), document.sources[rule.source])
    for field in refused:
        for flag, value in WITHOUT.get(field, {}).items():
            if flag in sources:
                sources[flag] = CapabilitySource(value, REFUSED)
    for flag, value in (own or {}).items():
        sources[flag] = CapabilitySource(value, USER)
    return sources


def find_capabilities(
    protocol: str,
    host: str,
    model: str,
    provider: str = "",
    own: Mapping[str, Any] | None = None,
    refused: Collection[str] = (),
) -> Capabilities:
    """See ``capability_sources``."""
    sources = capability_sources(protocol, host, model, provider, own, refused)
    return replace(Capabilities(), **{flag: entry.value for flag, entry in sources.items()})
