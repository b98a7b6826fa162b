"""Reading the lines that stream-json prints."""

from __future__ import annotations

import json

from swecli.core.protocol.codec import decode_body
from swecli.core.protocol.events import Event


def decode_event(line: str) -> Event:
    """The event of a line."""
    data = json.loads(line)
    return Event(**{**data, "body": decode_body(json.dumps(data["body"]))})
