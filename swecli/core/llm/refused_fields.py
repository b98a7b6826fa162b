"""Optional fields of requests that a server refused: what a complaint means, and the file that remembers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from swecli.core.llm.addresses import host_of
from swecli.core.llm.capabilities import WITHOUT, is_vendors
from swecli.core.llm.errors import COMPLAINTS, WireError
from swecli.core.llm.json_values import as_object, as_text, compact
from swecli.core.llm.learned_file import LearnedFile
from swecli.core.llm.protocols.base import Target, WireRequest
from swecli.lazy_pattern import lazy_pattern

_REFUSAL = lazy_pattern(
    r"unsupported|not supported|unknown|unrecognized|unexpected|not permitted|not allowed|extra (?:inputs|fields)"
    r"|does not support|additional propert|no such|input should be|invalid (?:parameter|argument|field|value)",
    re.IGNORECASE,
)
_NAMES: Mapping[str, re.Pattern[str]] = {
    "block_binding": lazy_pattern(r"\bblock_binding\b|thinking-binding-controls"),
    "display": lazy_pattern(r"\bdisplay\b|(?<![\w.])thinking(?:\.type|\.adaptive)?(?![\w.])"),
    "diagnostics": lazy_pattern(r"\bdiagnostics\b|cache-diagnosis"),
    "comparison_response_id": lazy_pattern(r"\bcomparison_response_id\b"),
    "prompt_cache_options": lazy_pattern(r"\bprompt_cache_options\b"),
    "ttl": lazy_pattern(r"cache_control\S*\.ttl\b|(?<![\w.])ttl\b"),
    "clear_at": lazy_pattern(r"\bclear_at\b|system-clear-at"),
    "tool_addition": lazy_pattern(r"\btool_(?:addition|removal)\b|mid-conversation-tool-changes"),
    "configuration_update": lazy_pattern(r"\bconfiguration_update\b"),
    "answer_format": lazy_pattern(
        r"\boutput_config\.format\b(?!\.)|(?<!for )\bresponse_format\b(?![.'])|\btext\.format\b(?!\.)"
    ),
    "output_config": lazy_pattern(r"messages[.\[]\d+\S*output_config\b|mid-conversation-output-config"),
    "system": lazy_pattern(r"\brole\b[^\n]{0,40}['\"`]system\b|messages[.\[]\d+\]?\.role\b"),
}
"""What names a field in a server's complaint, the most special field first. A server that does not know ``display``
may complain about all of ``thinking``."""
_MARKS: Mapping[str, tuple[str, ...]] = {
    "answer_format": ('"json_schema"',),
    "system": ('"role":"system"',),
    "tool_addition": ('"tool_addition"', '"tool_removal"'),
    "configuration_update": ('"configuration_update"',),
}
"""What shows that a request has the field, if not its name as a key."""
FIELDS = tuple(_NAMES)
IMAGE_REFUSAL = "image:"
"""Beginning of the name of an image that a server refused."""
TOOLS_REFUSAL = "tools:"
"""Beginning of the name of a model that gets no tools at a server."""
PATH_ABSENCE = "path:"
"""Beginning of the name of a path that a server does not have."""


def refused_field(error: WireError, wire: WireRequest) -> str:
    """The optional field of a capability that the server refuses; empty if the complaint is about something else."""
    if error.kind != "bad_request" or error.status not in COMPLAINTS:
        return ""
    text = f"{error.parameter} {error.words}"
    if not _REFUSAL.search(text):
        return ""
    body = ""
    for name, pattern in _NAMES.items():
        if pattern.search(text):
            body = body or compact(wire.body)
            if any(mark in body for mark in _MARKS.get(name, (f'"{name}":',))):
                return name
    return ""


def without_field(target: Target, field: str) -> Target:
    """The target of requests without a field that the server refused."""
    capabilities = replace(target.capabilities, **WITHOUT.get(field, {}))
    refused = target.refused if field in target.refused else (*target.refused, field)
    return replace(target, capabilities=capabilities, refused=refused)


def refusal_place(base_url: str, model: str) -> str:
    """The key under which refused fields are remembered: host and port, and the model if the server is a vendor's own,
    whose models differ."""
    address = urlsplit(base_url).netloc.rpartition("@")[2].lower()
    return f"{address} {model}" if is_vendors(host_of(base_url)) else address


KEPT_DAYS = 30
"""Days after which a server may be asked again: it may have learned the field."""
_MAX_HOSTS = 500
_MAX_IMAGES = 100
"""Images of one server."""


class RefusedFields:
    """The file of refused fields by host. Nothing here raises: what can't be stored is learned again from the next
    error."""

    def __init__(self, path: Path) -> None:
        self._file = LearnedFile(path, "hosts", {"version": 1})

    def find(self, host: str, today: date) -> tuple[str, ...]:
        fields = as_object(self._file.read().get(host))
        oldest = (today - timedelta(days=KEPT_DAYS)).isoformat()
        others = (name for name in fields if name.startswith((IMAGE_REFUSAL, TOOLS_REFUSAL, PATH_ABSENCE)))
        return tuple(name for name in (*FIELDS, *others) if as_text(fields.get(name)) >= oldest)

    def learn(self, host: str, field: str, today: date) -> str:
        """Store a field. Returns a sentence for the user if that failed, else the empty string."""
        try:
            with self._file.alone():
                hosts = self._file.read()
                fields = {**as_object(hosts.pop(host, None)), field: today.isoformat()}
                for name in [name for name in fields if name.startswith(IMAGE_REFUSAL)][:-_MAX_IMAGES]:
                    del fields[name]
                self._file.write(dict([*hosts.items(), (host, fields)][-_MAX_HOSTS:]))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return f"Could not store that {host} refuses {field} in {self._file.path}: {reason}."
        return ""
