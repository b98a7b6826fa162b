"""JSON Schema of the settings files, for editors that complete and check TOML (taplo, Even Better TOML, Zed)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from swecli.core.config.change import descriptions
from swecli.core.config.settings import Section, Settings

ADDRESS: Final = "https://swecli.github.io/swecli/config.schema.json"
"""Where the documentation's site has it; the example of the settings refers to it."""


def settings_schema() -> dict[str, Any]:
    """The schema, with each setting's meaning. Checks across settings, and of texts with a form of their own, are left
    to swecli."""
    schema = msgspec.json.schema(Settings, schema_hook=lambda kind: {})
    sections = {section.__name__: section for section in _sections(Section)}
    for name, definition in cast("dict[str, dict[str, Any]]", schema["$defs"]).items():
        section = sections.get(name)
        if section is None:
            continue
        definition["description"] = " ".join(inspect.cleandoc(section.__doc__ or "").split())
        about = descriptions(section)
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(section)}
        for key, content in cast("dict[str, dict[str, Any]]", definition.get("properties", {})).items():
            if meaning := about.get(fields[key], ""):
                content["description"] = meaning
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS,
        "title": "Settings of swecli (config.toml)",
        **schema,
    }


def _sections(kind: type[Section]) -> Iterator[type[Section]]:
    for section in kind.__subclasses__():
        yield section
        yield from _sections(section)
