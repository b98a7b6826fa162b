"""What the published schema has works: every event is told by something."""

from __future__ import annotations

import re
from pathlib import Path
from types import UnionType
from typing import cast, get_args

import swecli
from swecli.core.protocol.codec import json_schema
from swecli.core.protocol.events import Body


def names(union: object) -> set[type]:
    return set(get_args(cast("UnionType", union)))


def test_every_event_comes_from_somewhere() -> None:
    package = Path(swecli.__file__).parent
    sources = "\n".join(
        re.sub(r"case .*:", "", path.read_text())  # a pattern looks like a call
        for folder in ("core", "features")
        for path in sorted((package / folder).rglob("*.py"))
        if path.parent.name != "protocol"
    )
    assert {body.__name__ for body in names(Body)} - set(re.findall(r"\b\w+(?=\()", sources)) == set()


def test_nothing_in_the_schema_is_for_later() -> None:
    text = str(json_schema())
    assert not [word for word in ("'fork'", "'edit_context'") if word in text]
